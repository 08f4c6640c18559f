/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Random histories of the queue of output: the lines of each run are saved in
 * their order, and each once. */
#include "supervisor_batches.h"

#include <stdlib.h>

#include "../../mod_agent/core/clock.h"
#include "../../mod_agent/supervisor/lease/fair_queue.h"

#define HISTORIES 100
#define STEPS     2000

typedef struct history_t {
    fixture_t *fixture;
    agent_batch_queue_t *batches;
    /* In flight: a shared batch and a dedicated one. */
    agent_batch_t *sent[2];
    /* The number of the last line of each run that was saved. */
    apr_int64_t saved[RUNS];
} history_t;

static int below(int limit)
{
    return (int)(drand48() * limit);
}

static void add_any_line(const history_t *history)
{
    static char line[70000];
    apr_size_t length = below(5) > 0 ? 50 + below(9000) : 66000 + below(3000);

    agent_batch_add(&history->fixture->runs->batches,
                    history->fixture->leases[below(RUNS)], AGENT_ITEM_EVENT,
                    line, length, -1);
}

static void check_lines(history_t *history, const agent_batch_t *batch)
{
    for (int i = 0; i < batch->items->nelts; i++) {
        const agent_item_t *item = agent_batch_item(batch, i);
        int run = item->run->key.run_id[0] - '0';

        if (!item->run->is_discarded) {
            assert_int_equal(item->seq, ++history->saved[run]);
        }
    }
}

static void move_some_runs(const history_t *history, apr_pool_t *pool)
{
    apr_hash_t *runs = apr_hash_make(pool);

    for (int i = 0; i < RUNS; i++) {
        if (below(3) == 0) {
            apr_hash_set(runs, history->fixture->leases[i]->key.run_id, 36, "");
        }
    }
    agent_batch_move_runs(history->batches, runs);
}

static void end_attempt(history_t *history, int kind)
{
    agent_batch_t *batch = history->sent[kind];
    int outcome = below(10);

    history->sent[kind] = NULL;
    if (outcome < 2) {
        agent_batch_send_fail(history->batches, batch, 0);
        if (kind == 0 && outcome == 0) {
            agent_batch_split_by_run(history->batches, batch);
        }
        return;
    }
    check_lines(history, batch);
    if (kind == 0) {
        agent_batch_move_mark_slow(history->batches,
                                   &history->fixture->runs->leases, batch,
                                   1 + below(400000));
    }
    if (kind == 0 && outcome < 4) {
        move_some_runs(history, batch->pool);
    }
    agent_batch_remove(history->batches, batch);
}

static void begin_attempt(history_t *history, int kind)
{
    agent_batch_t *batch = kind > 0
        ? agent_batch_send_next_dedicated(history->batches)
        : agent_batch_send_next_shared(history->batches);

    if (batch != NULL && kind > 0 && below(2) > 0) {
        batch = agent_batch_split_by_cost(history->batches, batch,
                                          1 + below(60000));
    }
    if (batch != NULL) {
        agent_batch_send_begin(history->batches, batch);
        history->sent[kind] = batch;
    }
}

/* A run moves with all parts from one on: their memory is known without them.
 */
static void check_sums(const history_t *history)
{
    for (int i = 0; i < RUNS; i++) {
        const agent_batch_run_t *last = apr_hash_get(
            history->batches->parts, history->fixture->leases[i]->key.run_id,
            36);
        apr_size_t sum = 0;

        for (const agent_batch_run_t *run = last; run != NULL;
             run = run->earlier) {
            sum += run->memory;
            assert_int_equal(
                last->memory_before + last->memory - run->memory_before, sum);
        }
    }
}

static void step(history_t *history)
{
    agent_lease_t *lease = history->fixture->leases[below(RUNS)];

    history->fixture->runs->context->now += below(30000);
    if (below(60) == 0) {
        agent_batch_size_dedicate(&lease->batch_size,
                                  history->fixture->runs->context->now);
    }
    agent_batch_move_step(history->batches);
    check_sums(history);
    for (int kind = 0; kind < 2; kind++) {
        if (history->sent[kind] == NULL && below(3) == 0) {
            begin_attempt(history, kind);
        }
        else if (history->sent[kind] != NULL && below(2) > 0) {
            end_attempt(history, kind);
        }
    }
}

static void check_history(apr_pool_t *pool, int seed)
{
    history_t history = {.fixture = make_fixture(pool)};

    history.batches = &history.fixture->runs->batches;
    srand48(seed);
    for (int i = 0; i < RUNS; i++) {
        history.saved[i] = history.fixture->leases[i]->next_seq - 1;
    }
    for (int i = 0; i < STEPS; i++) {
        if (below(2) > 0) {
            add_any_line(&history);
        }
        step(&history);
    }
    while (!agent_batch_is_empty(history.batches)) {
        step(&history);
    }
    for (int i = 0; i < RUNS; i++) {
        assert_int_equal(history.saved[i],
                         history.fixture->leases[i]->next_seq - 1);
    }
    assert_int_equal(history.batches->backlogs.sums[AGENT_BACKLOG_SHARED], 0);
    assert_int_equal(history.batches->backlogs.sums[AGENT_BACKLOG_DEDICATED],
                     0);
    assert_int_equal(history.batches->backlogs.sums[AGENT_BACKLOG_MEDIUM], 0);
    assert_int_equal(history.batches->backlogs.sums[AGENT_BACKLOG_COST], 0);
    assert_int_equal(history.batches->moving, 0);
}

static void lines_are_saved_in_order_whatever_moves_fails_or_is_split(
    void **state)
{
    for (int seed = 1; seed <= HISTORIES; seed++) {
        apr_pool_t *pool;

        apr_pool_create(&pool, *state);
        check_history(pool, seed);
        apr_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(lines_are_saved_in_order_whatever_moves_fails_or_is_split),
    };

    return CHECK_RUN(tests);
}
