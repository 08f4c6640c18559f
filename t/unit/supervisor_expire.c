/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* When expired rows are deleted, and what accounts have is counted; see
 * supervisor/statement/expire.h and account_sweeps.h.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/supervisor/statement/account_sweeps.h"
#include "../../mod_agent/supervisor/statement/expire.h"
#include "../../mod_agent/supervisor/statement/sweep.h"

#define NOW apr_time_from_sec(1000)

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

/* A connection with all sweeps of the worker. */
static agent_database_t *make_sweeps(agent_worker_t *worker, apr_pool_t *pool)
{
    agent_database_t *database = apr_pcalloc(pool, sizeof(*database));
    const agent_database_settings_t settings = {0};

    worker->context->pool = pool;
    agent_database_init(database, worker->context, NULL, &settings);
    agent_expire_add(database, worker, NULL);
    agent_account_sweeps_add(database, worker, NULL);
    return database;
}

/* The one with that number, and its operation; NULL: there is none. */
static agent_sweep_t *get_sweep(const agent_operation_t **operation,
                                const agent_database_t *database, int number)
{
    const agent_operation_entry_t *entry;

    if (number >= database->entries->nelts) {
        return NULL;
    }
    entry = &APR_ARRAY_IDX(database->entries, number, agent_operation_entry_t);
    *operation = entry->operation;
    return entry->part;
}

static agent_sweep_t *find_sweep(const agent_operation_t **operation,
                                 const agent_database_t *database,
                                 const char *name)
{
    for (int i = 0;; i++) {
        agent_sweep_t *sweep = get_sweep(operation, database, i);

        if (sweep == NULL) {
            /* There is none of that name. */
            abort();
        }
        if (strcmp((*operation)->name, name) == 0) {
            return sweep;
        }
    }
}

/* The pause after a sweep that failed is that long, give or take 20 %. */
static void assert_pause(const agent_operation_t *operation,
                         agent_sweep_t *sweep, agent_failure_t failure, int sec)
{
    /* In brackets: cmocka has a macro of that name. */
    (operation->fail)(sweep, failure);
    assert_true(operation->due(sweep) == sweep->due_at);
    assert_in_range(apr_time_as_msec(sweep->due_at - NOW), sec * 800,
                    sec * 1200);
}

/* All sweeps but that of partitions. */
static void assert_pauses(void *pool, agent_failure_t failure, int sec)
{
    const agent_database_t *database = make_sweeps(make_worker(pool), pool);
    const agent_operation_t *operation;
    agent_sweep_t *sweep;

    for (int i = 0; (sweep = get_sweep(&operation, database, i)) != NULL; i++) {
        bool is_retried = operation->fail == agent_sweep_retry;

        if (is_retried || operation->fail == agent_sweep_fail) {
            assert_pause(operation, sweep, failure, is_retried ? 10 : sec);
        }
    }
}

static void a_sweep_that_failed_is_repeated_after_10_seconds(void **state)
{
    assert_pauses(*state, AGENT_FAILURE_RETRY, 10);
    assert_pauses(*state, AGENT_FAILURE_LOST, 10);
}

/* An operator who cancels it does so because it takes too long. */
static void a_sweep_that_took_too_long_is_repeated_after_10_minutes(
    void **state)
{
    assert_pauses(*state, AGENT_FAILURE_TIMEOUT, 600);
    assert_pauses(*state, AGENT_FAILURE_CANCEL, 600);
}

/* The next one has other threads, or other runs. */
static void threads_and_full_runs_are_tried_again_after_10_seconds(void **state)
{
    static const char *const names[] = {"expire_threads", "end_full_runs"};
    const agent_database_t *database = make_sweeps(make_worker(*state), *state);

    for (int i = 0; i < 2; i++) {
        const agent_operation_t *operation;
        agent_sweep_t *sweep = find_sweep(&operation, database, names[i]);

        assert_pause(operation, sweep, AGENT_FAILURE_TIMEOUT, 10);
    }
}

static void partitions_that_were_not_made_are_made_a_minute_later(void **state)
{
    const agent_database_t *database = make_sweeps(make_worker(*state), *state);
    const agent_operation_t *operation;
    agent_sweep_t *sweep = find_sweep(&operation, database,
                                      "maintain_partitions");

    assert_true(sweep->kind->interval == apr_time_from_sec(6 * 3600));
    assert_pause(operation, sweep, AGENT_FAILURE_TIMEOUT, 60);
}

static void a_worker_without_a_lease_deletes_nothing(void **state)
{
    agent_worker_t *worker = make_worker(*state);
    const agent_database_t *database = make_sweeps(worker, *state);
    const agent_operation_t *operation;
    agent_sweep_t *sweep;

    for (int i = 0; (sweep = get_sweep(&operation, database, i)) != NULL; i++) {
        worker->state = AGENT_WORKER_LIVE;
        assert_true(operation->due(sweep) <= NOW);
        worker->state = AGENT_WORKER_NEW;
        assert_true(operation->due(sweep) == AGENT_CLOCK_NEVER);
    }
}

static void each_sweep_calls_the_function_that_the_log_names(void **state)
{
    agent_worker_t *worker = make_worker(*state);
    const agent_database_t *database = make_sweeps(worker, *state);
    const agent_operation_t *operation;
    const agent_sweep_t *sweep;
    int count = 0;

    for (; (sweep = get_sweep(&operation, database, count)) != NULL; count++) {
        const agent_statement_t *statement = &sweep->kind->statement;
        const char *call = apr_pstrcat(*state, "agent.", operation->name, "(",
                                       NULL);

        assert_non_null(strstr(statement->sql, call));
        assert_string_equal(
            statement->name,
            apr_pstrcat(*state, "agent_", operation->name, NULL));
        assert_true((sweep->kind->make_params != NULL)
                    == (statement->params > 0));
    }
    assert_true(count > 5);
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
        CHECK_TEST(threads_and_full_runs_are_tried_again_after_10_seconds),
        CHECK_TEST(partitions_that_were_not_made_are_made_a_minute_later),
        CHECK_TEST(a_worker_without_a_lease_deletes_nothing),
        CHECK_TEST(each_sweep_calls_the_function_that_the_log_names),
        CHECK_TEST(events_are_kept_for_100_years_without_a_retention),
    };

    return CHECK_RUN(tests);
}
