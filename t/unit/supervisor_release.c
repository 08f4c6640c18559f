/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Runs that are claimed again under the same epoch; see
 * supervisor/lease/release.h and supervisor/statement/claim.c. */
#include "supervisor_pools.h"

#include "../../mod_agent/supervisor/lease/batch_send.h"
#include "../../mod_agent/supervisor/runner/run/run_end.h"

/* A pool with a runner that has room; all it needs to have leases. */
static fixture_t *make_lease_fixture(apr_pool_t *pool)
{
    fixture_t *f = make_idle_fixture(pool);

    agent_lease_group_init(&f->runner[0].group, &f->runner[0], 0);
    agent_notify_init(&f->notify, &f->context);
    return f;
}

/* The result of a claim is a run of the first pool in its first epoch. */
static void claim_run(fixture_t *f)
{
    PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    char *values[] = {ONE,  OTHER, ONE, "1",   "agent", "1",  "1",
                      "-1", NULL,  "0", "100", "0",     NULL, NULL};
    PGresAttDesc columns[14] = {{"deployment_id"}};

    for (int i = 0; i < 14; i++) {
        columns[i].name = "column";
    }
    assert_true(PQsetResultAttrs(rows, 14, columns));
    for (int i = 0; i < 14; i++) {
        assert_true(
            PQsetvalue(rows, 0, i, values[i],
                       values[i] != NULL ? (int)strlen(values[i]) : -1));
    }
    agent_schedule_claim(&f->schedule);
    agent_claim_choose(&f->claim);
    agent_claim_operation.receive(&f->claim, (const agent_db_result_t *)&rows);
    PQclear(rows);
}

static agent_lease_t *find_lease(const fixture_t *f)
{
    agent_lease_key_t key = {.epoch = 1};

    memcpy(key.run_id, OTHER, sizeof(key.run_id));
    return agent_lease_find(&f->runs.leases, &key);
}

/* The next release is sent, without a connection of libpq. */
static void send_release(fixture_t *f)
{
    agent_db_t db = {
        .prepared = apr_array_make(f->context.pool, 1, sizeof(void *))};
    agent_database_t database = {
        .context = &f->context, .db = &db, .scratch = f->context.pool};
    agent_error_t *err;

    assert_true(agent_release_runs_operation.due(&f->release)
                == f->context.now);
    agent_release_runs_operation.send(&f->release, &database, &err);
}

static bool is_released(fixture_t *f)
{
    return agent_release_runs_operation.due(&f->release) != AGENT_CLOCK_NEVER;
}

/* The database loses each claim when it crashes. */
static void a_run_that_is_claimed_twice_under_one_epoch_is_released_once(
    void **state)
{
    fixture_t *f = make_lease_fixture(*state);

    claim_run(f);
    assert_int_equal(find_lease(f)->state, AGENT_LEASE_HELD);
    for (int i = 0; i < 3; i++) {
        claim_run(f);
        assert_null(find_lease(f));
    }
    send_release(f);
    assert_int_equal(f->runs.releases.in_flight, 1);
    receive_release(f);
    assert_false(is_released(f));
    claim_run(f);
    assert_int_equal(find_lease(f)->state, AGENT_LEASE_HELD);
}

/* The release may have been executed before the claim: then nobody else would
 * release the run. */
static void a_run_that_is_claimed_while_its_release_is_in_flight_is_released(
    void **state)
{
    fixture_t *f = make_lease_fixture(*state);

    claim_run(f);
    claim_run(f);
    send_release(f);
    claim_run(f);
    receive_release(f);
    assert_null(find_lease(f));
    send_release(f);
    receive_release(f);
    assert_false(is_released(f));
}

static void a_release_that_fails_is_repeated_once(void **state)
{
    fixture_t *f = make_lease_fixture(*state);

    claim_run(f);
    claim_run(f);
    send_release(f);
    claim_run(f);
    (agent_release_runs_operation.fail)(&f->release, AGENT_FAILURE_OTHER);
    APR_RING_FIRST(&f->runs.releases.waiting)->retry.retry_at = NOW;
    send_release(f);
    receive_release(f);
    assert_false(is_released(f));
}

/* An operator, or a tool that ends long statements, did it. */
static void a_release_that_is_cancelled_is_not_counted(void **state)
{
    fixture_t *f = make_lease_fixture(*state);
    agent_release_t *release;

    claim_run(f);
    claim_run(f);
    release = APR_RING_FIRST(&f->runs.releases.waiting);
    for (int i = 0; i < 9; i++) {
        /* From then on it is fail_run. */
        release->error = i < 5 ? NULL : "ReleaseTimeoutError";
        send_release(f);
        (agent_release_runs_operation.fail)(&f->release, AGENT_FAILURE_CANCEL);
        assert_int_equal(release->retry.failures, 0);
        assert_true(release->retry.retry_at > NOW);
        release->retry.retry_at = NOW;
    }
}

/* The connection is lost each time when a release is sent, while others
 * succeed or not. Returns after how many seconds its run is to end in error. */
static int count_seconds(fixture_t *f, bool has_others)
{
    const agent_release_t *release;

    f->context.timing.patience = apr_time_from_sec(300);
    claim_run(f);
    claim_run(f);
    release = APR_RING_FIRST(&f->runs.releases.waiting);
    while (true) {
        send_release(f);
        (agent_release_runs_operation.fail)(&f->release, AGENT_FAILURE_LOST);
        if (release->error != NULL) {
            return (int)apr_time_sec(f->context.now - NOW);
        }
        assert_true(release->retry.retry_at > f->context.now);
        if (has_others) {
            agent_patience_save(&f->release.released, 1, f->context.now + 1);
        }
        f->context.now = release->retry.retry_at;
    }
}

/* A line of another run may crash the database. */
static void a_release_is_tried_for_minutes_when_its_connection_is_lost(
    void **state)
{
    int alone = count_seconds(make_lease_fixture(*state), false);
    int beside_others = count_seconds(make_lease_fixture(*state), true);

    assert_in_range(beside_others, 300, 400);
    assert_in_range(alone, 3600, 3700);
}

/* Its connection is lost when a release is sent, the control connection with
 * the notice of a crash, and perhaps its own. */
static void lose_release(fixture_t *f, bool has_notice)
{
    send_release(f);
    f->bulk.sent_at = f->context.now;
    f->bulk.crash_reported_at = has_notice ? f->context.now : 0;
    (agent_release_runs_operation.fail)(&f->release, AGENT_FAILURE_LOST);
    agent_release_runs_on_connected(&f->release);
    f->control.crash_reported_at = f->context.now;
    agent_release_runs_on_connected(&f->release);
    f->context.now = APR_RING_FIRST(&f->runs.releases.waiting)->retry.retry_at;
}

static void a_release_that_has_crashed_the_database_three_times_is_given_up(
    void **state)
{
    fixture_t *f = make_lease_fixture(*state);
    const agent_release_t *release;

    f->context.timing.patience = apr_time_from_sec(300);
    claim_run(f);
    claim_run(f);
    release = APR_RING_FIRST(&f->runs.releases.waiting);
    for (int i = 0; i < 5; i++) {
        lose_release(f, true);
        assert_int_equal(release->retry.failures, 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(release->retry.failures, i);
        assert_null(release->error);
        lose_release(f, false);
    }
    assert_string_equal(release->error, "ReleaseFailedError");
}

/* Its result would be taken for one about the output of the new lease. */
static void a_run_that_is_claimed_while_its_output_is_in_flight_is_released(
    void **state)
{
    fixture_t *f = make_lease_fixture(*state);
    static const char line[] = "{}";
    agent_batch_t *batch;

    claim_run(f);
    agent_batch_add(&f->runs.batches, find_lease(f), AGENT_ITEM_END, line, 2,
                    -1);
    batch = agent_batch_send_next_shared(&f->runs.batches);
    agent_batch_send_begin(&f->runs.batches, batch);
    agent_run_end_lose(&f->runs, find_lease(f));
    assert_null(find_lease(f));
    claim_run(f);
    assert_null(find_lease(f));
    assert_false(is_released(f));
    agent_batch_remove(&f->runs.batches, batch);
    send_release(f);
}

/* A failover has undone the first claim, and the output before, while the
 * database was away. */
static void output_that_waits_is_not_saved_under_a_new_lease(void **state)
{
    fixture_t *f = make_lease_fixture(*state);
    static const char line[] = "{}";
    agent_lease_t *lease;

    claim_run(f);
    lease = find_lease(f);
    agent_batch_add(&f->runs.batches, lease, AGENT_ITEM_END, line, 2, -1);
    agent_run_end_set_state(&f->runs, lease, AGENT_LEASE_ENDED);
    agent_run_end_detach(&f->runs, lease);
    claim_run(f);
    assert_true(agent_batch_is_empty(&f->runs.batches));
    assert_int_equal(find_lease(f)->state, AGENT_LEASE_HELD);
    assert_false(is_released(f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(output_that_waits_is_not_saved_under_a_new_lease),
        CHECK_TEST(
            a_run_that_is_claimed_twice_under_one_epoch_is_released_once),
        CHECK_TEST(
            a_run_that_is_claimed_while_its_release_is_in_flight_is_released),
        CHECK_TEST(a_release_that_fails_is_repeated_once),
        CHECK_TEST(a_release_that_is_cancelled_is_not_counted),
        CHECK_TEST(a_release_is_tried_for_minutes_when_its_connection_is_lost),
        CHECK_TEST(
            a_release_that_has_crashed_the_database_three_times_is_given_up),
        CHECK_TEST(
            a_run_that_is_claimed_while_its_output_is_in_flight_is_released),
    };

    return CHECK_RUN(tests);
}
