/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../t/bench/group_epoch.c */
/* OBJECTS: ../mod_ratelimit_regional/protocol/ */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* OBJECTS: ../t/bench/group_store.c ../t/bench/group_marks.c */
/* OBJECTS: ../mod_ratelimit_regional/store/exchange.c */
/* OBJECTS: ../mod_ratelimit_regional/store/flight.c */
/* OBJECTS: ../mod_ratelimit_regional/store/reply.c */
/* OBJECTS: ../mod_ratelimit_regional/store/away.c */
/* OBJECTS: ../mod_ratelimit_regional/store/queue.c */
/* Exchanges of a host with a store that is simulated in the same process. */
#include "check.h"

#include <string.h>
#include <time.h>

#include <apr_general.h>

#include "../../mod_ratelimit_regional/store/exchange.h"
#include "../bench/group_store.h"
#include "ratelimit_shared.h"

/* Exchanges until a host is connected are fewer. */
#define EXCHANGES 20

/* ---- The connection ---- */

/* A call under way: its reply, made when it was sent. */
typedef struct answer_t {
    bool is_sent;
    bool is_lost;  /* there is no reply: the connection has been closed */
    bool is_cut;   /* by the store */
    uint32_t left; /* polls until its reply comes */
    rlr_message_grant_t grants[RLR_CONNECTION_ITEMS_MAX];
    rlr_message_reply_t reply;
} answer_t;

struct rlr_connection_t {
    group_store_t *stores[RLR_SHARED_PARTITIONS];
    answer_t answers[RLR_SHARED_PARTITIONS];
    /* After how many polls each partition answers; HANGS: never. */
    uint32_t polls[RLR_SHARED_PARTITIONS];
    bool has_nodes;
    uint32_t cuts;   /* the next calls that have no reply */
    bool is_refused; /* no call is executed */
    bool is_late;    /* all calls come too late to be executed */
    uint32_t calls;
    uint32_t rounds;
};

#define HANGS UINT32_MAX

static uint64_t get_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

const char *rlr_connection_open(rlr_connection_t *connection)
{
    return NULL;
}

bool rlr_connection_has_nodes(const rlr_connection_t *connection)
{
    return connection->has_nodes;
}

void rlr_connection_add(rlr_connection_t *connection,
                        const rlr_message_call_t *call, uint32_t partition,
                        apr_pool_t *scratch)
{
    answer_t *answer = &connection->answers[partition];

    assert_false(answer->is_sent);
    connection->calls++;
    memset(answer, 0, sizeof(*answer));
    answer->is_sent = true;
    answer->left = connection->polls[partition];
    answer->is_cut = connection->cuts > 0;
    answer->is_lost = connection->is_refused;
    connection->cuts -= answer->is_cut;
    answer->reply.grants = answer->grants;
    group_store_call(connection->stores[partition], get_us(), call,
                     &answer->reply);
    if (connection->is_late) {
        answer->reply.status = RLR_MESSAGE_LATE;
    }
}

void rlr_connection_flush(rlr_connection_t *connection)
{
}

void rlr_connection_poll(rlr_connection_t *connection, int wait_ms)
{
    connection->rounds++;
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        uint32_t *left = &connection->answers[i].left;

        *left -= *left != HANGS && *left > 0;
    }
}

bool rlr_connection_has_reply(const rlr_connection_t *connection,
                              uint32_t partition)
{
    return connection->answers[partition].left == 0;
}

void rlr_connection_expire(rlr_connection_t *connection, uint32_t partition)
{
    connection->answers[partition].left = 0;
    connection->answers[partition].is_lost = true;
}

const char *rlr_connection_receive(rlr_connection_t *connection,
                                   uint32_t partition,
                                   rlr_message_reply_t *reply,
                                   uint32_t item_count)
{
    answer_t *answer = &connection->answers[partition];
    rlr_message_grant_t *grants = reply->grants;

    /* It would wait for a node of a cluster. */
    assert_int_equal(answer->left, 0);
    assert_true(answer->is_sent);
    answer->is_sent = false;
    *reply = answer->reply;
    reply->grants = grants;
    memcpy(grants, answer->grants, item_count * sizeof(*grants));
    return answer->is_lost || answer->is_cut ? "lost" : NULL;
}

bool rlr_connection_is_lost(const rlr_connection_t *connection,
                            uint32_t partition)
{
    return connection->answers[partition].is_cut;
}

/* ---- A host ---- */

typedef struct host_t {
    case_t memory;
    rlr_exchange_t exchange;
    rlr_connection_t connection;
    apr_pool_t *pool;
} host_t;

static void start(host_t *host)
{
    rlr_wait_slots_t slots;

    memset(host, 0, sizeof(*host));
    apr_initialize();
    apr_pool_create(&host->pool, NULL);
    begin(&host->memory, 64);
    slots = rlr_shared_wait_slots(&host->memory.shared);
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        host->connection.stores[i] = group_store_make(1, 0);
    }
    host->exchange.shared = &host->memory.shared;
    host->exchange.queue = rlr_queue_make(&slots, 1000, RLR_QUEUE_BRIEF_MS,
                                          host->pool);
    host->exchange.connection = &host->connection;
    host->exchange.timeout_ms = 5;
    host->exchange.pool = host->pool;
    memcpy(host->exchange.member.id, id, sizeof(id));
    host->exchange.member.members = 1;
    host->exchange.member.share_ms = 3600000;
}

static void stop(host_t *host)
{
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        group_store_drop(host->connection.stores[i]);
    }
    end(&host->memory);
    apr_pool_destroy(host->pool);
    apr_terminate();
}

static const char *exchange_once(host_t *host)
{
    apr_pool_t *scratch;
    const char *error;

    apr_pool_create(&scratch, host->pool);
    error = rlr_exchange_run(&host->exchange,
                             rlr_queue_take(host->exchange.queue, 0), scratch);
    apr_pool_destroy(scratch);
    return error;
}

static uint32_t count_connected(host_t *host)
{
    rlr_shared_summary_t summary;

    rlr_shared_sum_up(&summary, &host->memory.shared, false, get_us() / 1000);
    return summary.connected;
}

/* Exchanges until that many partitions are connected; false: they are not after
 * EXCHANGES. */
static bool connect_partitions(host_t *host, uint32_t count)
{
    for (int i = 0; i < EXCHANGES && count_connected(host) < count; i++) {
        exchange_once(host);
    }
    return count_connected(host) >= count;
}

static void a_lock_that_is_not_free_holds_up_no_other_partition(void **state)
{
    host_t host;

    start(&host);
    assert_non_null(rlr_shared_lock(&host.memory.shared, 15, get_us() / 1000));
    assert_true(connect_partitions(&host, 15));
    rlr_shared_unlock(&host.memory.shared, 15);
    assert_true(connect_partitions(&host, 16));
    stop(&host);
}

static void a_store_that_was_slow_is_quick_after_a_heartbeat_in_time(
    void **state)
{
    host_t host;
    rlr_wait_slots_t slots;
    uint64_t now_ms = get_us() / 1000;

    start(&host);
    slots = rlr_shared_wait_slots(&host.memory.shared);
    rlr_wait_slot_set_slow(&slots, true, now_ms + 3600000);
    /* On a busy machine one may take too long. */
    while (rlr_wait_slot_is_slow(&slots, now_ms)) {
        exchange_once(&host);
    }
    stop(&host);
}

static void a_node_that_hangs_is_not_waited_for(void **state)
{
    unsigned char other[RLR_MESSAGE_KEY_BYTES] = {0, 6};
    host_t host;
    uint32_t hanging = 0;

    start(&host);
    host.connection.has_nodes = true;
    for (uint32_t i = 0; i < 5; i++) {
        host.connection.polls[i] = HANGS;
        hanging |= 1U << i;
    }
    assert_true(connect_partitions(&host, 11));
    assert_true(rlr_exchange_is_waiting(&host.exchange));
    for (int i = 0; i < 100; i++) {
        const rlr_message_call_t *call = &host.exchange.flights[6].call;

        rlr_queue_refill(host.exchange.queue, other, ten);
        exchange_once(&host);
        assert_int_equal(call->item_count, 1);
        assert_int_equal(host.exchange.away.partitions & ~hanging, 0);
    }
    stop(&host);
}

static void the_reply_of_a_slow_node_is_taken_later(void **state)
{
    host_t host;

    start(&host);
    host.connection.has_nodes = true;
    /* More polls than a round waits for: not within the timeout. */
    host.exchange.timeout_ms = 0;
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        host.connection.polls[i] = 3;
    }
    assert_true(connect_partitions(&host, RLR_SHARED_PARTITIONS));
    stop(&host);
}

static void requests_for_a_node_that_is_slow_are_not_sent(void **state)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0};
    host_t host;

    start(&host);
    host.connection.has_nodes = true;
    assert_true(connect_partitions(&host, RLR_SHARED_PARTITIONS));
    host.connection.polls[0] = HANGS;
    while (!host.exchange.flights[0].is_sent) {
        rlr_queue_refill(host.exchange.queue, key, ten);
        exchange_once(&host);
    }
    assert_true(rlr_queue_is_away(host.exchange.queue, key));
    while (get_us() / 1000 < host.exchange.flights[0].sent_ms + 200) {
        exchange_once(&host);
    }
    host.connection.answers[0].left = 0;
    exchange_once(&host);
    /* A sixteenth of it, though no round has waited. */
    assert_true(rlr_stats_recent_us(rlr_shared_stats(&host.memory.shared))
                >= 12000);
    while (!host.exchange.flights[0].is_sent) {
        rlr_queue_refill(host.exchange.queue, key, ten);
        exchange_once(&host);
    }
    /* Its call ends after half a second, in which others are answered. */
    host.connection.polls[0] = 0;
    while (host.exchange.flights[0].is_sent
           || rlr_queue_is_away(host.exchange.queue, key)) {
        exchange_once(&host);
    }
    stop(&host);
}

static void requests_that_cannot_be_sent_hold_up_no_others(void **state)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0, 1};
    rlr_partition_state_t *partition;
    host_t host;

    start(&host);
    assert_true(connect_partitions(&host, RLR_SHARED_PARTITIONS));
    /* Another process waits for a reply. */
    partition = rlr_shared_lock(&host.memory.shared, 1, get_us() / 1000);
    partition->next_call_ms = UINT64_MAX;
    rlr_shared_unlock(&host.memory.shared, 1);
    host.connection.rounds = 0;
    rlr_queue_refill(host.exchange.queue, key, ten);
    exchange_once(&host);
    assert_int_equal(host.connection.rounds, 1);
    stop(&host);
}

static void requests_are_sent_again_if_the_connection_had_ended(void **state)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0, 1};
    uint32_t sent;
    host_t host;

    start(&host);
    assert_true(connect_partitions(&host, RLR_SHARED_PARTITIONS));
    host.exchange.timeout_ms = 10000;
    host.connection.cuts = 1;
    sent = host.connection.calls;
    rlr_queue_refill(host.exchange.queue, key, ten);
    assert_null(exchange_once(&host));
    assert_true(host.connection.calls >= sent + 2);
    assert_true(host.exchange.is_answered);
    assert_int_equal(host.exchange.away.partitions, 0);
    assert_false(rlr_queue_is_away(host.exchange.queue, key));
    stop(&host);
}

static void requests_are_sent_again_once(void **state)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0, 1};
    host_t host;

    start(&host);
    assert_true(connect_partitions(&host, RLR_SHARED_PARTITIONS));
    host.exchange.timeout_ms = 10000;
    host.connection.cuts = UINT32_MAX;
    rlr_queue_refill(host.exchange.queue, key, ten);
    assert_non_null(exchange_once(&host));
    /* The first attempt to open it again is at once. */
    assert_int_equal(host.exchange.attempt_ms, 0);
    assert_true(rlr_exchange_is_waiting(&host.exchange));
    host.connection.cuts = 0;
    exchange_once(&host);
    assert_false(rlr_exchange_is_waiting(&host.exchange));
    stop(&host);
}

/* The heartbeat that follows may be one that writes nothing. */
static void a_store_that_cannot_write_is_not_asked_again_at_once(void **state)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0, 1};
    host_t host;

    start(&host);
    assert_true(connect_partitions(&host, RLR_SHARED_PARTITIONS));
    host.connection.is_refused = true;
    rlr_queue_refill(host.exchange.queue, key, ten);
    assert_non_null(exchange_once(&host));
    assert_int_not_equal(host.exchange.attempt_ms, 0);
    stop(&host);
}

static void a_call_that_comes_too_late_does_not_end_a_failure(void **state)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0, 1};
    host_t host;

    start(&host);
    assert_true(connect_partitions(&host, RLR_SHARED_PARTITIONS));
    host.connection.cuts = UINT32_MAX;
    rlr_queue_refill(host.exchange.queue, key, ten);
    assert_non_null(exchange_once(&host));
    host.connection.cuts = 0;
    host.connection.is_late = true;
    for (uint32_t sent = host.connection.calls;
         host.connection.calls == sent;) {
        rlr_queue_refill(host.exchange.queue, key, ten);
        assert_null(exchange_once(&host));
    }
    assert_false(host.exchange.is_answered);
    assert_true(host.exchange.is_failing);
    assert_true(rlr_queue_is_away(host.exchange.queue, key));
    host.connection.is_late = false;
    while (rlr_queue_is_away(host.exchange.queue, key)) {
        rlr_queue_refill(host.exchange.queue, key, ten);
        assert_null(exchange_once(&host));
    }
    assert_false(host.exchange.is_failing);
    stop(&host);
}

static void a_former_configuration_sends_nothing(void **state)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0, 1};
    rlr_shared_t next;
    host_t host;
    uint32_t calls;

    start(&host);
    host.connection.has_nodes = true;
    assert_true(connect_partitions(&host, RLR_SHARED_PARTITIONS));
    host.connection.polls[0] = HANGS;
    while (!rlr_exchange_is_waiting(&host.exchange)) {
        exchange_once(&host);
    }
    assert_true(rlr_shared_attach(&next, host.memory.memory, host.memory.size));
    rlr_shared_use_store(&next, 1);
    calls = host.connection.calls;
    rlr_queue_refill(host.exchange.queue, key, ten);
    assert_null(exchange_once(&host));
    assert_int_equal(host.connection.calls, calls);
    assert_false(rlr_exchange_is_waiting(&host.exchange));
    assert_true(rlr_queue_is_away(host.exchange.queue, key));
    /* The former address again. */
    rlr_shared_use_store(&next, 0);
    host.connection.polls[0] = 0;
    host.connection.answers[0].is_sent = false;
    rlr_queue_set_away(host.exchange.queue, 0);
    rlr_queue_refill(host.exchange.queue, key, ten);
    exchange_once(&host);
    assert_int_not_equal(host.connection.calls, calls);
    stop(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_lock_that_is_not_free_holds_up_no_other_partition),
        CHECK_TEST(a_store_that_was_slow_is_quick_after_a_heartbeat_in_time),
        CHECK_TEST(a_node_that_hangs_is_not_waited_for),
        CHECK_TEST(the_reply_of_a_slow_node_is_taken_later),
        CHECK_TEST(requests_for_a_node_that_is_slow_are_not_sent),
        CHECK_TEST(requests_that_cannot_be_sent_hold_up_no_others),
        CHECK_TEST(requests_are_sent_again_if_the_connection_had_ended),
        CHECK_TEST(requests_are_sent_again_once),
        CHECK_TEST(a_store_that_cannot_write_is_not_asked_again_at_once),
        CHECK_TEST(a_call_that_comes_too_late_does_not_end_a_failure),
        CHECK_TEST(a_former_configuration_sends_nothing),
    };

    return CHECK_RUN(tests);
}
