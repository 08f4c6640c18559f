/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* The release of a worker's runs that fails again and again; see
 * supervisor/statement/worker.h. */
#include "check.h"

#include <apr_strings.h>

#include "../../mod_agent/supervisor/base/order.h"
#include "../../mod_agent/supervisor/statement/worker.h"

#define OWN_ID   "7"
#define FAILURES 50

typedef struct fixture_t {
    agent_context_t context;
    agent_supervisor_config_t config;
    agent_worker_t worker;
    agent_database_t control;
    agent_database_t bulk;
    agent_database_t output;
    int reports;
} fixture_t;

static void count_report(void *baton, agent_log_level_t level, const char *id,
                         apr_status_t rv, const char *text)
{
    ((fixture_t *)baton)->reports++;
}

static fixture_t *make_fixture(apr_pool_t *pool)
{
    fixture_t *f = apr_pcalloc(pool, sizeof(*f));

    f->config.log = (agent_log_t){.write = count_report, .baton = f};
    f->context.pool = pool;
    f->context.config = &f->config;
    f->context.now = apr_time_from_sec(1000);
    f->worker.context = &f->context;
    f->worker.control = &f->control;
    f->worker.bulk = &f->bulk;
    f->worker.output = &f->output;
    f->worker.state = AGENT_WORKER_LIVE;
    apr_cpystrn(f->worker.id, OWN_ID, sizeof(f->worker.id));
    agent_worker_init(&f->worker);
    return f;
}

static void fail_often(fixture_t *f)
{
    for (int i = 0; i < FAILURES && f->worker.dead->nelts > 0; i++) {
        (agent_mark_dead_operation.fail)(&f->worker, AGENT_FAILURE_TIMEOUT);
    }
}

static void the_end_of_the_supervisor_gives_up_no_run(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->context.mode = AGENT_MODE_STOPPING;
    agent_worker_deregister(&f->worker);
    fail_often(f);
    assert_null(f->worker.run_error);
    assert_int_equal(f->worker.dead_limit.current, 1);
    assert_int_equal(f->worker.dead->nelts, 1);
    assert_int_equal(f->worker.state, AGENT_WORKER_DEREGISTERING);
    assert_int_equal(f->reports, 0);
}

static void fail_once(fixture_t *f, agent_failure_t failure)
{
    (agent_mark_dead_operation.fail)(&f->worker, failure);
}

/* Its statements are not counted, whether they release the run or end it. */
static void the_release_of_a_run_that_is_cancelled_is_tried_again(void **state)
{
    fixture_t *f = make_fixture(*state);

    agent_worker_add_dead(&f->worker, "8", true);
    for (int i = 0; i < FAILURES; i++) {
        fail_once(f, AGENT_FAILURE_CANCEL);
        assert_null(f->worker.run_error);
    }
    fail_once(f, AGENT_FAILURE_TIMEOUT);
    for (int i = 0; i < FAILURES; i++) {
        assert_non_null(f->worker.run_error);
        assert_int_equal(f->worker.dead->nelts, 1);
        assert_true(f->worker.dead_at >= f->context.now);
        fail_once(f, AGENT_FAILURE_CANCEL);
    }
    fail_once(f, AGENT_FAILURE_TIMEOUT);
    assert_null(f->worker.run_error);
    assert_int_equal(APR_ARRAY_IDX(f->worker.dead, 0, agent_dead_t).failures,
                     1);
}

/* The database may have crashed at the statement of a run that is innocent. */
static void a_release_is_tried_for_minutes_when_connections_are_lost(
    void **state)
{
    fixture_t *f = make_fixture(*state);
    apr_time_t begin = f->context.now;

    f->context.timing.patience = apr_time_from_sec(300);
    agent_worker_add_dead(&f->worker, "8", true);
    while (f->worker.run_error == NULL) {
        f->context.now = AGENT_MAX(f->worker.dead_at, f->context.now);
        fail_once(f, AGENT_FAILURE_LOST);
        f->bulk.answered_at = f->context.now + 1;
    }
    assert_in_range(apr_time_sec(f->context.now - begin), 300, 400);
    assert_int_equal(f->worker.dead_limit.current, 1);
}

static void a_release_that_has_crashed_the_database_three_times_is_given_up(
    void **state)
{
    fixture_t *f = make_fixture(*state);

    f->context.timing.patience = apr_time_from_sec(300);
    agent_worker_add_dead(&f->worker, "8", true);
    f->worker.dead_limit.current = 1;
    for (int i = 0; i < 8; i++) {
        assert_null(f->worker.run_error);
        f->bulk.sent_at = ++f->context.now;
        /* At first another process crashes. */
        f->bulk.crash_reported_at = i < 5 ? f->context.now : 0;
        fail_once(f, AGENT_FAILURE_LOST);
        agent_worker_count_crash(&f->worker);
        assert_null(f->worker.run_error);
        f->control.crash_reported_at = f->context.now;
        agent_worker_count_crash(&f->worker);
    }
    assert_non_null(f->worker.run_error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_release_of_a_run_that_is_cancelled_is_tried_again),
        CHECK_TEST(a_release_is_tried_for_minutes_when_connections_are_lost),
        CHECK_TEST(
            a_release_that_has_crashed_the_database_three_times_is_given_up),
        CHECK_TEST(the_end_of_the_supervisor_gives_up_no_run),
    };

    return CHECK_RUN(tests);
}
