/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* A worker that has lost the result of a claim, when the lease is over; see
 * supervisor/statement/worker.h. */
#include "supervisor_queue.h"

/* A connection that can be closed. */
static void make_database(agent_database_t *database, agent_context_t *context)
{
    database->context = context;
    apr_pool_create(&database->pool, context->pool);
    apr_pool_create(&database->scratch, context->pool);
}

/* It registers again now. Its runners were killed already. */
static queue_t *make_lost(apr_pool_t *pool)
{
    queue_t *q = make_logged(pool);
    agent_runs_t *runs = q->fixture->runs;
    agent_runner_t *runner;

    agent_release_init(&runs->releases, runs->context);
    agent_runner_request_init(&runs->requests, &runs->batches.backlogs, pool);
    AGENT_RING_EACH(runner, &q->fixture->io->runners->all, agent_runner_t, link)
    {
        runner->state = AGENT_RUNNER_KILLED;
    }
    q->worker.runners = q->fixture->io->runners;
    q->worker.runs = runs;
    make_database(&q->bulk, runs->context);
    make_database(&q->output, runs->context);
    agent_worker_init(&q->worker);
    q->worker.renewed_at = NOW;
    runs->context->timing.stop = apr_time_from_sec(13);
    q->worker.has_lost_claim = true;
    q->worker.reregister_by = NOW;
    return q;
}

static void tick_after(queue_t *q, int sec)
{
    agent_context_t *context = q->fixture->runs->context;

    context->now = NOW + apr_time_from_sec(sec);
    q->worker.renewed_at = context->now;
    agent_worker_tick(&q->worker);
    context->now = NOW;
}

static agent_release_t *release_of(const queue_t *q,
                                   const agent_lease_key_t *key)
{
    agent_release_t *release = agent_release_find(&q->fixture->runs->releases,
                                                  key);

    assert_non_null(release);
    return release;
}

static void the_runs_under_way_are_released_uncounted(void **state)
{
    queue_t *q = make_lost(*state);

    tick_after(q, 0);
    assert_int_equal(q->fixture->runs->leases.held, 0);
    assert_false(release_of(q, &q->fixture->leases[0]->key)->is_counted);
    assert_int_equal(q->worker.state, AGENT_WORKER_LIVE);
}

/* Else the run would be requeued, and the line crash the database again. */
static void a_run_whose_line_fails_to_the_end_ends_in_error(void **state)
{
    queue_t *q = make_lost(*state);
    const agent_lease_t *lease = q->fixture->leases[0];

    add_long(q, 0);
    fail_first(q, AGENT_FAILURE_OTHER);
    tick_after(q, 0);
    assert_null(release_of(q, &lease->key)->error);
    fail_first(q, AGENT_FAILURE_OTHER);
    fail_first(q, AGENT_FAILURE_OTHER);
    assert_non_null(release_of(q, &lease->key)->error);
}

static void output_is_dropped_that_is_not_saved_in_half_a_lease(void **state)
{
    queue_t *q = make_lost(*state);

    add_long(q, 0);
    tick_after(q, 0);
    tick_after(q, 9);
    assert_false(agent_batch_is_empty(q->batches));
    assert_int_equal(q->worker.state, AGENT_WORKER_LIVE);
    tick_after(q, 10);
    assert_true(agent_batch_is_empty(q->batches));
    assert_int_equal(q->worker.state, AGENT_WORKER_DEREGISTERING);
}

/* The connection is lost; 30 s later it is made again. Output is kept until
 * then, and half a lease longer. */
static void check_kept_without(queue_t *q, agent_database_t *database)
{
    add_long(q, 0);
    tick_after(q, 0);
    database->lost_at = NOW;
    tick_after(q, 30);
    assert_int_equal(q->worker.state, AGENT_WORKER_LIVE);
    database->lost_at = 0;
    q->worker.connected_at = NOW + apr_time_from_sec(30);
    tick_after(q, 39);
    assert_int_equal(q->worker.state, AGENT_WORKER_LIVE);
    tick_after(q, 40);
    assert_int_equal(q->worker.state, AGENT_WORKER_DEREGISTERING);
}

/* Its next attempts may show that it crashes the database. */
static void output_is_kept_while_the_database_is_away_and_after_that(
    void **state)
{
    queue_t *q = make_lost(*state);

    check_kept_without(q, &q->control);
    q = make_lost(*state);
    check_kept_without(q, &q->bulk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_runs_under_way_are_released_uncounted),
        CHECK_TEST(a_run_whose_line_fails_to_the_end_ends_in_error),
        CHECK_TEST(output_is_dropped_that_is_not_saved_in_half_a_lease),
        CHECK_TEST(output_is_kept_while_the_database_is_away_and_after_that),
    };

    return CHECK_RUN(tests);
}
