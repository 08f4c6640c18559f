/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* The runs of a worker whose lease ends without a renewal; see
 * supervisor/statement/worker.h. */
#include "supervisor_queue.h"

#include "../../mod_agent/supervisor/statement/start.h"

/* A worker with two runners, which were killed already. */
static queue_t *make_worker(apr_pool_t *pool)
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
    q->worker.renewed_at = NOW;
    runs->context->timing.stop = apr_time_from_sec(13);
    runs->context->timing.kill = apr_time_from_sec(20);
    return q;
}

/* Without a database for longer than the lease. */
static void end_lease(queue_t *q)
{
    agent_context_t *context = q->fixture->runs->context;

    context->now = NOW + context->timing.kill;
    agent_worker_tick(&q->worker);
    context->now = NOW;
    assert_int_equal(q->fixture->runs->leases.held, 0);
}

static bool is_counted(const queue_t *q, int run)
{
    const agent_release_t *release = agent_release_find(
        &q->fixture->runs->releases, &q->fixture->leases[run]->key);

    assert_non_null(release);
    return release->is_counted;
}

/* A statement about the run was lost, and the server had a crash. */
static void crash_at(agent_retry_t *retry)
{
    retry->losses.failures = 1;
    retry->crash_since = NOW;
}

/* The recovery may take longer than the lease each time. */
static void the_attempt_of_a_run_counts_whose_statement_crashed_the_database(
    void **state)
{
    queue_t *q = make_worker(*state);

    crash_at(&q->fixture->leases[0]->start_retry);
    crash_at(&q->fixture->leases[1]->request.retry);
    q->fixture->leases[2]->start_retry.failures = 2;
    report_crash(q);
    end_lease(q);
    assert_true(is_counted(q, 0));
    assert_true(is_counted(q, 1));
    assert_true(is_counted(q, 2));
    assert_false(is_counted(q, 3));
}

static void the_attempts_of_others_do_not_count(void **state)
{
    queue_t *q = make_worker(*state);

    /* No connection got the notice of a crash: the server was stopped. */
    crash_at(&q->fixture->leases[0]->start_retry);
    end_lease(q);
    assert_false(is_counted(q, 0));
    assert_false(is_counted(q, 1));
}

/* The loss was not a crash that comes later. */
static void a_run_that_has_started_is_not_at_fault(void **state)
{
    queue_t *q = make_worker(*state);
    agent_lease_t *lease = q->fixture->leases[0];

    crash_at(&lease->start_retry);
    agent_start_hand_over(q->fixture->runs, lease, "{\"checkpoint\":null}");
    report_crash(q);
    end_lease(q);
    assert_false(is_counted(q, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(
            the_attempt_of_a_run_counts_whose_statement_crashed_the_database),
        CHECK_TEST(the_attempts_of_others_do_not_count),
        CHECK_TEST(a_run_that_has_started_is_not_at_fault),
    };

    return CHECK_RUN(tests);
}
