/* SPDX-License-Identifier: Apache-2.0 */
/* Runs exchanges: at once with pending requests, else every 100 ms. */
#include "worker.h"

#include <stdatomic.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <apr_thread_proc.h>
#include <ap_mpm.h>
#include <http_core.h>

#include "../private.h"
#include "../protocol/period.h"
#include "exchange.h"
#include "leave.h"
#include "publish.h"

#define IDLE_US 100000U
/* While replies of a slow node are outstanding. */
#define WAITING_US 1000U

typedef struct worker_t {
    rlr_exchange_t exchange;
    const rlr_store_t *store;
    server_rec *server;
    apr_pool_t *pool; /* of the thread */
    apr_thread_t *thread;
    rlr_failure_t failure;
    uint64_t logged_ms;
    bool is_away;
} worker_t;

/* The outcome for requests without a lease. */
static const char *name_outcome(const worker_t *worker, uint64_t now_ms)
{
    rlr_shared_summary_t summary;

    if (worker->failure == RLR_FAILURE_OPEN) {
        return "this host counts by itself";
    }
    if (worker->failure == RLR_FAILURE_CLOSED) {
        return "keys without a lease are refused";
    }
    rlr_shared_sum_up(&summary, worker->exchange.shared, false, now_ms);
    return summary.starting == RLR_SHARED_PARTITIONS
        ? "this host has not been connected to it since its start: it has "
          "no share, and refuses all requests"
        : "keys without a lease are refused, or decided by the share of this "
          "host while it has one";
}

static void log_error(worker_t *worker, const char *error, uint64_t now_ms)
{
    if (!rlr_shared_is_due(worker->exchange.shared,
                           worker->exchange.is_refused ? RLR_SHARED_REFUSED
                                                       : RLR_SHARED_AWAY,
                           now_ms)) {
        return;
    }
    if (worker->exchange.is_refused) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, worker->server,
                     RLR_LOGNO(0121) "the store refuses this host: %s; %s",
                     error, name_outcome(worker, now_ms));
    }
    else {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, worker->server,
                     RLR_LOGNO(0115) "the store does not answer: %s; %s", error,
                     name_outcome(worker, now_ms));
    }
    worker->is_away = true;
}

/* Once for each start. */
static void log_start(const worker_t *worker,
                      const rlr_shared_summary_t *summary, uint64_t now_ms)
{
    uint64_t started_ms = (uint64_t)summary->started_ms;
    uint64_t left_ms;

    /* Before that RLR0122 names the hosts that are missing. */
    if (summary->started_ms <= 0 || summary->members < RLR_SHARED_PARTITIONS
        || !rlr_store_is_starting(worker->store, summary, &left_ms)
        || !rlr_shared_is_new_start(worker->exchange.shared,
                                    now_ms - started_ms)) {
        return;
    }
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, worker->server,
                 RLR_LOGNO(0124) "the hosts of the store have started %lu s "
                                 "ago: nothing is admitted under a rule until "
                                 "its interval has passed since then, under "
                                 "the longest, of %u s, for %lu s more",
                 (unsigned long)(started_ms / 1000),
                 worker->store->host.longest_sec,
                 (unsigned long)(left_ms / 1000 + 1));
}

/* The round trip to the store, and the timeout that it needs. */
static const char *describe_round_trip(const worker_t *worker, char *text,
                                       size_t size)
{
    const rlr_stats_t *stats = rlr_shared_stats(worker->exchange.shared);
    uint32_t advised_ms = rlr_stats_advise(stats, worker->exchange.timeout_ms);
    int length = apr_snprintf(text, size, "a round trip took %.1f ms of late",
                              (double)rlr_stats_recent_us(stats) / 1000);

    if (advised_ms > 0) {
        apr_snprintf(text + length, size - (size_t)length,
                     ": too long for %u ms, set RateLimitStoreTimeout to %ums",
                     worker->exchange.timeout_ms, advised_ms);
    }
    return text;
}

/* Hosts that are missing, and requests that the store came too late for. */
static void log_state(const worker_t *worker, uint64_t now_ms)
{
    const rlr_shared_t *shared = worker->exchange.shared;
    rlr_stats_t *stats = rlr_shared_stats(shared);
    uint64_t late = rlr_stats_sum(stats, RLR_STATS_LATE)
        + rlr_stats_sum(stats, RLR_STATS_BUSY);
    rlr_shared_summary_t summary;
    const rlr_message_group_t *group = &summary.group;
    char text[160];

    rlr_shared_sum_up(&summary, shared, false, now_ms);
    log_start(worker, &summary, now_ms);
    if ((group->missing > 0 || group->reserved > 0)
        && rlr_shared_is_due(shared, RLR_SHARED_MISSING, now_ms)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, worker->server,
                     RLR_LOGNO(0122) "%u of %u hosts are not connected to "
                                     "the store%s%s%s; it reserves the shares "
                                     "of %u, for up to %lu s and the rule's "
                                     "interval: that much of each limit is "
                                     "refused",
                     group->missing, worker->exchange.member.members,
                     group->names[0] != '\0' ? " (names: " : "", group->names,
                     group->names[0] != '\0' ? ")" : "", group->reserved,
                     (unsigned long)(group->reserved_ms / 1000));
    }
    if (late > atomic_load(&stats->logged)
        && rlr_shared_is_due(shared, RLR_SHARED_LATE, now_ms)) {
        ap_log_error(
            APLOG_MARK, APLOG_WARNING, 0, worker->server,
            RLR_LOGNO(0123) "%lu requests were %s, which did not reply within "
                            "RateLimitStoreTimeout, or as many requests waited "
                            "for it as may; %s",
            (unsigned long)(late - atomic_exchange(&stats->logged, late)),
            worker->failure == RLR_FAILURE_OPEN
                ? "decided by this host without the store"
                : "refused without the store",
            describe_round_trip(worker, text, sizeof(text)));
    }
}

static bool is_connected(const worker_t *worker, uint64_t now_ms)
{
    rlr_shared_summary_t summary;

    rlr_shared_sum_up(&summary, worker->exchange.shared, false, now_ms);
    return summary.connected > 0;
}

static void log_result(worker_t *worker, const char *error)
{
    rlr_time_t now = rlr_clock_now();

    if (error != NULL) {
        log_error(worker, error, now.floor_ms);
    }
    else if (worker->is_away && worker->exchange.is_answered
             && is_connected(worker, now.floor_ms)) {
        ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, worker->server,
                     RLR_LOGNO(0116) "the store answers");
        worker->is_away = false;
    }
    if (worker->exchange.is_clock_set
        && rlr_shared_is_due(worker->exchange.shared, RLR_SHARED_CLOCK,
                             now.floor_ms)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, worker->server,
                     RLR_LOGNO(0126) "the clock of the store was set, or that "
                                     "of this host was stopped: nothing is "
                                     "admitted until all hosts have reported "
                                     "their admissions again");
    }
    if (now.floor_ms >= worker->logged_ms + 1000) {
        worker->logged_ms = now.floor_ms;
        log_state(worker, now.floor_ms);
    }
}

static void *APR_THREAD_FUNC run(apr_thread_t *thread, void *data)
{
    worker_t *worker = data;
    apr_pool_t *scratch;

    apr_pool_create(&scratch, worker->pool);
    while (!rlr_queue_is_stopped(worker->exchange.queue)) {
        rlr_pending_request_t *pending_requests = rlr_queue_take(
            worker->exchange.queue,
            rlr_exchange_is_waiting(&worker->exchange) ? WAITING_US : IDLE_US);
        const char *error = rlr_exchange_run(&worker->exchange,
                                             pending_requests, scratch);

        log_result(worker, error);
        if (error == NULL) {
            rlr_publish_send(worker->exchange.connection, worker->store,
                             scratch);
        }
        apr_pool_clear(scratch);
    }
    return NULL;
}

static apr_status_t stop(void *data)
{
    worker_t *worker = data;
    apr_status_t rv;

    rlr_queue_stop(worker->exchange.queue);
    apr_thread_join(&rv, worker->thread);
    apr_pool_destroy(worker->pool);
    return APR_SUCCESS;
}

/* Slots for a quarter of the child's threads; if it has fewer than four, as
 * with prefork, for a quarter of the threads of all children, at least one. */
static rlr_wait_slots_t get_wait_slots(const rlr_shared_t *shared,
                                       apr_pool_t *pool)
{
    rlr_wait_slots_t slots = rlr_shared_wait_slots(shared);
    uint32_t count;
    int threads = 0;
    int children = 0;

    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &children);
    if (threads >= 4) {
        slots.count = (uint32_t)threads / 4;
        slots.all = apr_pcalloc(pool, slots.count * sizeof(*slots.all));
        slots.recent = apr_pcalloc(pool, sizeof(*slots.recent));
        return slots;
    }
    count = (uint32_t)(children * (threads > 0 ? threads : 1)) / 4;
    if (count < slots.count) {
        slots.count = count > 0 ? count : 1;
    }
    return slots;
}

void rlr_worker_start(rlr_store_t *store, server_rec *server, apr_pool_t *pool)
{
    worker_t *worker = apr_pcalloc(pool, sizeof(*worker));
    rlr_exchange_t *exchange = &worker->exchange;
    rlr_wait_slots_t slots = get_wait_slots(&store->shared, pool);
    rlr_queue_t *queue = rlr_queue_make(
        &slots, store->config->timeout_ms * 1000, RLR_QUEUE_BRIEF_MS, pool);
    apr_status_t rv = queue != NULL ? APR_SUCCESS : APR_ENOMEM;

    /* Of its own: a pool has one thread. */
    apr_pool_create(&worker->pool, NULL);
    worker->store = store;
    worker->server = server;
    worker->failure = store->config->failure;
    exchange->shared = &store->shared;
    exchange->member = store->member;
    exchange->queue = queue;
    exchange->timeout_ms = store->config->timeout_ms;
    exchange->pool = worker->pool;
    exchange->connection = rlr_connection_make(&store->config->connection,
                                               worker->pool);
    if (rv == APR_SUCCESS) {
        rv = apr_generate_random_bytes((unsigned char *)&exchange->tag,
                                       sizeof(exchange->tag));
    }
    if (rv == APR_SUCCESS) {
        rv = apr_thread_create(&worker->thread, NULL, run, worker,
                               worker->pool);
    }
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, server,
                     RLR_LOGNO(0117) "no thread for the store: this child "
                                     "decides as if it were away");
        apr_pool_destroy(worker->pool);
        return;
    }
    store->queue = queue;
    apr_pool_pre_cleanup_register(pool, worker, stop);
}

/* ---- The end ---- */

typedef struct end_t {
    const rlr_store_t *store;
    server_rec *server;
    apr_pool_t *pool;
} end_t;

/* B + G of protocol/README.md. */
static uint64_t get_reserved_ms(const rlr_member_config_t *config)
{
    return rlr_period_bring(config->share_ms) + RLR_PERIOD_TWO_STORES_MS;
}

/* In the parent, after the end of all children. */
static apr_status_t leave(void *data)
{
    end_t *end = data;
    const char *error;
    uint32_t members;
    uint32_t left;

    if (ap_state_query(AP_SQ_MAIN_STATE) != AP_SQ_MS_EXITING) {
        return APR_SUCCESS;
    }
    members = rlr_leave_run(&left, &error, end->store, end->pool);
    if (left < members) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, end->server,
                     RLR_LOGNO(0119) "left %u of %u partitions of the store: "
                                     "%s; in the others the share of this host "
                                     "is reserved for %u s",
                     left, members, error,
                     (unsigned)(get_reserved_ms(&end->store->member) / 1000));
    }
    else if (members > 0) {
        ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, end->server,
                     RLR_LOGNO(0120) "left the store: the share of this host "
                                     "is not reserved");
    }
    return APR_SUCCESS;
}

void rlr_worker_leave_at_end(rlr_store_t *store, server_rec *server,
                             apr_pool_t *pconf)
{
    end_t *end = apr_palloc(pconf, sizeof(*end));

    end->store = store;
    end->server = server;
    end->pool = pconf;
    /* Before the log is closed and the module unloaded. */
    apr_pool_pre_cleanup_register(pconf, end, leave);
}
