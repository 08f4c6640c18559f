/* SPDX-License-Identifier: Apache-2.0 */
/* The database's side of webhooks: claims, ends, care; see webhook.h. */
#include "webhook.h"

#include <string.h>

#include <apr_strings.h>

#include "../../core/json.h"
#include "../instance.h"

/* Without a hint, as with claims of runs; with hints not more often. */
#define INTERVAL    apr_time_from_sec(1)
#define LEAST_PAUSE apr_time_from_msec(100)
#define SWEEP_PAUSE apr_time_from_sec(3600)
#define CLAIM_MOST  16
#define TIMEOUT     apr_time_from_sec(10)
/* Of a lease, beyond the longest attempt: to save its end. */
#define LEASE_MARGIN_SEC 30

enum { COL_ACCOUNT, COL_RUN, COL_ATTEMPT, COL_URL, COL_BODY };

void agent_webhook_init(agent_supervisor_t *sv)
{
    agent_webhook_table_t *table = &sv->webhooks;

    APR_RING_INIT(&table->sending, agent_delivery_t, link);
    APR_RING_INIT(&table->ended, agent_delivery_t, link);
    for (int i = 0; i < AGENT_WEBHOOK_SOCKETS; i++) {
        table->sockets[i].fd = -1;
    }
    table->timer_at = AGENT_NEVER;
}

apr_interval_time_t agent_webhook_timeout(const agent_supervisor_t *sv)
{
    apr_interval_time_t timeout = sv->config->webhooks.timeout;

    return timeout > 0 ? timeout : TIMEOUT;
}

void agent_webhook_hint(agent_supervisor_t *sv)
{
    agent_webhook_table_t *table = &sv->webhooks;
    apr_time_t soon = table->claimed_at + LEAST_PAUSE;

    if (soon < table->claim_at) {
        table->claim_at = soon;
    }
}

bool agent_webhook_is_idle(const agent_supervisor_t *sv)
{
    return sv->webhooks.count == 0;
}

static void forget(agent_delivery_t *delivery)
{
    agent_webhook_table_t *table = &delivery->sv->webhooks;

    agent_webhook_drop(delivery);
    APR_RING_REMOVE(delivery, link);
    table->count--;
    table->bytes -= delivery->length;
    apr_pool_destroy(delivery->pool);
}

static void forget_all(agent_delivery_ring_t *ring)
{
    while (!APR_RING_EMPTY(ring, agent_delivery_t, link)) {
        forget(APR_RING_FIRST(ring));
    }
}

void agent_webhook_abort(agent_supervisor_t *sv)
{
    forget_all(&sv->webhooks.sending);
}

/* ---- claiming ---- */

static apr_time_t due_claim(agent_supervisor_t *sv)
{
    const agent_webhook_table_t *table = &sv->webhooks;

    return sv->config->webhooks.is_on && agent_worker_is_live(sv)
            && sv->mode == AGENT_MODE_RUNNING
            && table->count < AGENT_WEBHOOK_SLOTS
            && table->bytes < AGENT_WEBHOOK_MAX_BYTES
        ? table->claim_at
        : AGENT_NEVER;
}

static apr_status_t send_claim(agent_supervisor_t *sv,
                               agent_database_t *database, agent_error_t **err)
{
    agent_webhook_table_t *table = &sv->webhooks;
    apr_pool_t *pool = database->scratch;
    int lease = (int)apr_time_sec(agent_webhook_timeout(sv)) + LEASE_MARGIN_SEC;
    int room = AGENT_WEBHOOK_SLOTS - table->count;
    const char *params[5];

    table->claim_limit = room < CLAIM_MOST ? room : CLAIM_MOST;
    table->claimed_at = sv->now;
    table->claim_at = AGENT_NEVER;
    params[0] = sv->worker.id;
    params[1] = apr_itoa(pool, table->claim_limit);
    params[2] = apr_itoa(pool, room);
    params[3] = apr_psprintf(pool, "%" APR_SIZE_T_FMT,
                             AGENT_WEBHOOK_MAX_BYTES - table->bytes);
    params[4] = apr_itoa(pool, lease);
    return agent_db_send(database->db, AGENT_SQL_CLAIM_WEBHOOKS, params, err,
                         pool);
}

/* account_id NULL: of any account. */
static agent_delivery_t *find_delivery(agent_delivery_ring_t *ring,
                                       const char *run_id,
                                       const char *account_id)
{
    agent_delivery_t *delivery;

    AGENT_RING_EACH(delivery, ring, agent_delivery_t, link)
    {
        if (strcmp(delivery->run_id, run_id) == 0
            && (account_id == NULL
                || strcmp(delivery->account_id, account_id) == 0)) {
            return delivery;
        }
    }
    return NULL;
}

static agent_delivery_t *read_delivery(agent_supervisor_t *sv,
                                       const agent_db_result_t *result, int row)
{
    agent_delivery_t *delivery;
    apr_pool_t *pool;

    apr_pool_create(&pool, sv->pool);
    delivery = apr_pcalloc(pool, sizeof(*delivery));
    delivery->sv = sv;
    delivery->pool = pool;
    apr_cpystrn(delivery->account_id, agent_db_value(result, row, COL_ACCOUNT),
                sizeof(delivery->account_id));
    apr_cpystrn(delivery->run_id, agent_db_value(result, row, COL_RUN),
                sizeof(delivery->run_id));
    delivery->attempt = (int)apr_atoi64(
        agent_db_value(result, row, COL_ATTEMPT));
    delivery->url = apr_pstrdup(pool, agent_db_value(result, row, COL_URL));
    delivery->body = apr_pstrdup(pool, agent_db_value(result, row, COL_BODY));
    delivery->length = strlen(delivery->body);
    return delivery;
}

static void take_delivery(agent_supervisor_t *sv,
                          const agent_db_result_t *result, int row)
{
    agent_webhook_table_t *table = &sv->webhooks;
    agent_delivery_t *delivery = read_delivery(sv, result, row);
    agent_delivery_t *same = find_delivery(&table->sending, delivery->run_id,
                                           delivery->account_id);

    if (same != NULL) {
        /* Its lease was lost and is ours again: one attempt is enough. */
        same->attempt = delivery->attempt;
        apr_pool_destroy(delivery->pool);
        return;
    }
    APR_RING_INSERT_TAIL(&table->sending, delivery, agent_delivery_t, link);
    table->count++;
    table->bytes += delivery->length;
    agent_webhook_send(delivery);
}

static void receive_claim(agent_supervisor_t *sv,
                          const agent_db_result_t *result)
{
    agent_webhook_table_t *table = &sv->webhooks;
    int rows = agent_db_rows(result);
    apr_time_t next = rows == table->claim_limit
        ? sv->now
        : agent_database_after(sv, INTERVAL);

    /* A hint that came meanwhile may be for what this claim did not see. */
    if (next < table->claim_at) {
        table->claim_at = next;
    }
    /* Otherwise we are leaving, and mark_worker_dead releases them. */
    for (int row = 0; sv->mode == AGENT_MODE_RUNNING && row < rows; row++) {
        take_delivery(sv, result, row);
    }
}

static void fail_claim(agent_supervisor_t *sv, agent_failure_t failure)
{
    /* What was claimed without an answer is due again after its lease. */
    sv->webhooks.claim_at = agent_database_retry_at(sv, failure);
}

const agent_operation_t agent_webhook_claim_operation = {
    "claim_webhooks", due_claim, send_claim, receive_claim, fail_claim};

/* ---- ends ---- */

void agent_webhook_end(agent_delivery_t *delivery,
                       const agent_webhook_answer_t *answer)
{
    agent_webhook_table_t *table = &delivery->sv->webhooks;

    delivery->verdict = agent_webhook_judge(answer, delivery->pool);
    APR_RING_REMOVE(delivery, link);
    APR_RING_INSERT_TAIL(&table->ended, delivery, agent_delivery_t, link);
}

static apr_time_t due_save(agent_supervisor_t *sv)
{
    return agent_worker_is_live(sv)
            && !APR_RING_EMPTY(&sv->webhooks.ended, agent_delivery_t, link)
        ? sv->webhooks.save_at
        : AGENT_NEVER;
}

static void print_item(agent_buffer_t *items, const agent_delivery_t *delivery,
                       apr_pool_t *pool)
{
    const agent_webhook_verdict_t *verdict = &delivery->verdict;

    agent_buffer_print(
        items,
        "%s{\"a\":\"%s\",\"r\":\"%s\",\"n\":%d,\"o\":\"%s\","
        "\"t\":%s,\"s\":%s}",
        agent_buffer_length(items) > 0 ? "," : "[", delivery->account_id,
        delivery->run_id, delivery->attempt, verdict->outcome,
        agent_json_quote(verdict->reason, pool),
        verdict->wait > 0 ? apr_itoa(pool, verdict->wait) : "null");
}

static apr_status_t send_save(agent_supervisor_t *sv,
                              agent_database_t *database, agent_error_t **err)
{
    apr_pool_t *pool = database->scratch;
    agent_delivery_t *delivery;
    agent_buffer_t items;
    const char *params[2];

    agent_buffer_init(&items, pool);
    AGENT_RING_EACH(delivery, &sv->webhooks.ended, agent_delivery_t, link)
    {
        print_item(&items, delivery, pool);
        delivery->is_sent = true;
    }
    agent_buffer_append(&items, "]", 2);
    params[0] = sv->worker.id;
    params[1] = agent_buffer_text(&items);
    return agent_db_send(database->db, AGENT_SQL_SAVE_WEBHOOKS, params, err,
                         pool);
}

/* The first one of a delivery is seen without a look at the database; the
 * attempts after it are too many for the log of a receiver that is down. */
static void report_failure(const agent_delivery_t *delivery, const char *host,
                           const char *next_sec)
{
    if (delivery->attempt == 1) {
        agent_report_repeat(delivery->sv, AGENT_LOG_WARNING, "AGT0361", 0,
                            "webhook of run %s not delivered to %s: %s; tried "
                            "again for 23 hours, next in %s s",
                            delivery->run_id, host, delivery->verdict.reason,
                            next_sec);
    }
    else {
        agent_report_write(delivery->sv, AGENT_LOG_INFO, "AGT0443", 0,
                           "webhook of run %s not delivered to %s at attempt "
                           "%d: %s; tried again in %s s",
                           delivery->run_id, host, delivery->attempt,
                           delivery->verdict.reason, next_sec);
    }
}

/* What the log says of a URL: the rest of it may be secret. */
static void report_end(const agent_delivery_t *delivery, const char *outcome,
                       const char *next_sec)
{
    agent_supervisor_t *sv = delivery->sv;
    const char *host = delivery->target.host ? delivery->target.host : "?";

    if (strcmp(outcome, "delivered") == 0) {
        agent_report_write(sv, AGENT_LOG_DEBUG, "AGT0360", 0,
                           "webhook of run %s delivered to %s at attempt %d",
                           delivery->run_id, host, delivery->attempt);
    }
    else if (strcmp(outcome, "again") == 0) {
        report_failure(delivery, host, next_sec != NULL ? next_sec : "?");
    }
    else if (strcmp(outcome, "dead") == 0) {
        agent_report_repeat(sv, AGENT_LOG_WARNING, "AGT0362", 0,
                            "webhook of run %s given up, to %s, after attempt "
                            "%d: %s",
                            delivery->run_id, host, delivery->attempt,
                            delivery->verdict.reason);
    }
}

/* One row for each item, in another order. */
static void receive_save(agent_supervisor_t *sv,
                         const agent_db_result_t *result)
{
    agent_webhook_table_t *table = &sv->webhooks;
    agent_delivery_t *delivery;
    agent_delivery_t *next;

    for (int row = 0; row < agent_db_rows(result); row++) {
        delivery = find_delivery(&table->ended, agent_db_value(result, row, 0),
                                 NULL);
        if (delivery != NULL) {
            report_end(delivery, agent_db_value(result, row, 1),
                       agent_db_value(result, row, 2));
        }
    }
    AGENT_RING_EACH_SAFE(delivery, next, &table->ended, agent_delivery_t, link)
    {
        if (delivery->is_sent) {
            forget(delivery);
        }
    }
    /* Their receivers may have more, for which they had no room. */
    table->claim_at = sv->now;
}

static void fail_save(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->webhooks.save_at = agent_database_retry_at(sv, failure);
    if (failure == AGENT_FAILURE_DATA) {
        /* It would fail again; their leases end and they are due again. */
        forget_all(&sv->webhooks.ended);
    }
}

const agent_operation_t agent_webhook_save_operation = {
    "save_webhooks", due_save, send_save, receive_save, fail_save};

/* ---- care ---- */

static apr_time_t due_sweep(agent_supervisor_t *sv)
{
    return agent_worker_is_live(sv) ? sv->webhooks.sweep_at : AGENT_NEVER;
}

static apr_status_t send_sweep(agent_supervisor_t *sv,
                               agent_database_t *database, agent_error_t **err)
{
    const char *params[] = {agent_worker_retention(sv, database->scratch)};

    sv->webhooks.sweep_at = agent_database_after(sv, SWEEP_PAUSE);
    return agent_db_send(database->db, AGENT_SQL_SWEEP_WEBHOOKS, params, err,
                         database->scratch);
}

static void receive_sweep(agent_supervisor_t *sv,
                          const agent_db_result_t *result)
{
    const char *count = agent_db_rows(result) == 1
        ? agent_db_value(result, 0, 0)
        : NULL;

    if (count != NULL && strcmp(count, "0") != 0) {
        sv->webhooks.sweep_at = sv->now;
    }
}

static void fail_sweep(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->webhooks.sweep_at = agent_database_after(sv, apr_time_from_sec(60));
}

const agent_operation_t agent_webhook_sweep_operation = {
    "sweep_webhooks", due_sweep, send_sweep, receive_sweep, fail_sweep};
