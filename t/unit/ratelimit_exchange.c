/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/group/ */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* OBJECTS: ../t/bench/group_store.c ../t/bench/group_marks.c */
/* OBJECTS: ../mod_ratelimit_regional/store/exchange.c */
/* OBJECTS: ../mod_ratelimit_regional/store/away.c */
/* OBJECTS: ../mod_ratelimit_regional/store/queue.c */
/* Exchanges of a host with a store that is simulated in the same process. */
#include "check.h"

#include <string.h>
#include <time.h>

#include <apr_general.h>

#include "../../mod_ratelimit_regional/store/exchange.h"
#include "../bench/group_store.h"
#include "ratelimit_ledger.h"

/* Exchanges until a host is connected are fewer. */
#define EXCHANGES 20

/* ---- The connection ---- */

struct rlr_store_connection_t {
    group_store_t *stores[RLR_LEDGER_PARTITIONS];
    const rlr_store_call_t *calls[RLR_LEDGER_PARTITIONS];
    uint32_t partitions[RLR_LEDGER_PARTITIONS];
    uint32_t first;
    uint32_t count;
};

static uint64_t get_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

const char *rlr_connection_open(rlr_store_connection_t *connection)
{
    return NULL;
}

bool rlr_connection_has_nodes(const rlr_store_connection_t *connection)
{
    return false;
}

void rlr_connection_add(rlr_store_connection_t *connection,
                        const rlr_store_call_t *call, uint32_t partition,
                        apr_pool_t *scratch)
{
    connection->calls[connection->count] = call;
    connection->partitions[connection->count++] = partition;
}

void rlr_connection_flush(rlr_store_connection_t *connection)
{
}

const char *rlr_connection_receive(rlr_store_connection_t *connection,
                                   rlr_store_reply_t *reply,
                                   uint32_t item_count)
{
    uint32_t i = connection->first++;

    group_store_call(connection->stores[connection->partitions[i]], get_us(),
                     connection->calls[i], reply);
    if (connection->first == connection->count) {
        connection->first = 0;
        connection->count = 0;
    }
    return NULL;
}

/* ---- A host ---- */

typedef struct host_t {
    case_t memory;
    rlr_exchange_t exchange;
    rlr_store_connection_t connection;
    apr_pool_t *pool;
} host_t;

static void start(host_t *host)
{
    rlr_wait_slots_t slots;

    memset(host, 0, sizeof(*host));
    apr_initialize();
    apr_pool_create(&host->pool, NULL);
    begin(&host->memory, 64);
    slots = rlr_ledger_wait_slots(&host->memory.ledger);
    for (uint32_t i = 0; i < RLR_LEDGER_PARTITIONS; i++) {
        host->connection.stores[i] = group_store_make(1, 0);
    }
    host->exchange.ledger = &host->memory.ledger;
    host->exchange.queue = rlr_queue_make(&slots, 1000, host->pool);
    host->exchange.connection = &host->connection;
    memcpy(host->exchange.member.id, id, sizeof(id));
    host->exchange.member.members = 1;
    host->exchange.member.share_ms = 3600000;
}

static void stop(host_t *host)
{
    for (uint32_t i = 0; i < RLR_LEDGER_PARTITIONS; i++) {
        group_store_drop(host->connection.stores[i]);
    }
    end(&host->memory);
    apr_pool_destroy(host->pool);
    apr_terminate();
}

/* Exchanges until that many partitions are connected; false: they are not after
 * EXCHANGES. */
static bool connect_partitions(host_t *host, uint32_t count)
{
    rlr_ledger_summary_t summary = {0};

    for (int i = 0; i < EXCHANGES && summary.connected < count; i++) {
        apr_pool_t *scratch;

        apr_pool_create(&scratch, host->pool);
        assert_null(rlr_exchange_run(
            &host->exchange, rlr_queue_take(host->exchange.queue, 0), scratch));
        apr_pool_destroy(scratch);
        rlr_ledger_sum_up(&summary, &host->memory.ledger, false,
                          get_us() / 1000);
    }
    return summary.connected >= count;
}

static void a_lock_that_is_not_free_holds_up_no_other_partition(void **state)
{
    host_t host;

    start(&host);
    assert_non_null(rlr_ledger_lock(&host.memory.ledger, 15, get_us() / 1000));
    assert_true(connect_partitions(&host, 15));
    rlr_ledger_unlock(&host.memory.ledger, 15);
    assert_true(connect_partitions(&host, 16));
    stop(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_lock_that_is_not_free_holds_up_no_other_partition),
    };

    return CHECK_RUN(tests);
}
