/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ supervisor/lease/ supervisor/process/ */
/* OBJECTS: supervisor/runner/ supervisor/statement/ supervisor/webhook/ */
/* OBJECTS: core/ db/query.c db/limits.c db/send.c db/connection.c */
/* OBJECTS: db/array.c db/column.c */
/* When expired rows are deleted; see supervisor/statement/expire.h. */
#include "check.h"

#include "../../mod_agent/supervisor/statement/expire.h"

#define NOW apr_time_from_sec(1000)

static const agent_operation_t *const sweeps[] = {
    &agent_state_operation,   &agent_event_operation, &agent_copy_operation,
    &agent_call_operation,    &agent_store_operation, &agent_account_operation,
    &agent_api_key_operation, &agent_audit_operation, &agent_count_operation,
    &agent_measure_operation};

#define SWEEPS (int)(sizeof(sweeps) / sizeof(sweeps[0]))

static agent_worker_t *make_worker(apr_pool_t *pool)
{
    static const agent_supervisor_config_t config;
    agent_worker_t *worker = apr_pcalloc(pool, sizeof(*worker));

    worker->context = apr_pcalloc(pool, sizeof(*worker->context));
    worker->context->now = NOW;
    worker->context->config = &config;
    worker->state = AGENT_WORKER_LIVE;
    return worker;
}

/* The pause after a sweep that failed is that long, give or take 20 %. */
static void assert_pause(void *pool, agent_failure_t failure, int sec)
{
    for (int i = 0; i < SWEEPS; i++) {
        agent_sweep_t sweep = {.worker = make_worker(pool)};

        /* In brackets: cmocka has a macro of that name. */
        (sweeps[i]->fail)(&sweep, failure);
        assert_true(sweeps[i]->due(&sweep) == sweep.due_at);
        assert_in_range(apr_time_as_msec(sweep.due_at - NOW), sec * 800,
                        sec * 1200);
    }
}

static void a_sweep_that_failed_is_repeated_after_10_seconds(void **state)
{
    assert_pause(*state, AGENT_FAILURE_RETRY, 10);
    assert_pause(*state, AGENT_FAILURE_LOST, 10);
}

static void a_sweep_that_took_too_long_is_repeated_after_10_minutes(
    void **state)
{
    assert_pause(*state, AGENT_FAILURE_TIMEOUT, 600);
}

static void a_worker_without_a_lease_deletes_nothing(void **state)
{
    agent_worker_t *worker = make_worker(*state);
    agent_expire_t expire = {.worker = worker};
    agent_sweep_t sweep = {.worker = worker};

    assert_true(agent_expire_operation.due(&expire) <= NOW);
    worker->state = AGENT_WORKER_NEW;
    assert_true(agent_expire_operation.due(&expire) == AGENT_CLOCK_NEVER);
    assert_true(agent_partitions_operation.due(&expire) == AGENT_CLOCK_NEVER);
    for (int i = 0; i < SWEEPS; i++) {
        assert_true(sweeps[i]->due(&sweep) == AGENT_CLOCK_NEVER);
    }
}

static void events_are_kept_for_100_years_without_a_retention(void **state)
{
    agent_supervisor_config_t config = {.event_retention_days = 0};
    agent_context_t context = {.config = &config};

    assert_string_equal(agent_expire_retention(&context, *state), "36500 days");
    config.event_retention_days = 7;
    assert_string_equal(agent_expire_retention(&context, *state), "7 days");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_sweep_that_failed_is_repeated_after_10_seconds),
        CHECK_TEST(a_sweep_that_took_too_long_is_repeated_after_10_minutes),
        CHECK_TEST(a_worker_without_a_lease_deletes_nothing),
        CHECK_TEST(events_are_kept_for_100_years_without_a_retention),
    };

    return CHECK_RUN(tests);
}
