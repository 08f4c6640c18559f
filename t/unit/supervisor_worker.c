/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* The statements that are due when a connection is made again; see
 * supervisor/statement/worker.h. */
#include "check.h"

#include "../../mod_agent/supervisor/statement/worker.h"

#define NOW apr_time_from_sec(1000)

typedef struct fixture_t {
    agent_supervisor_config_t config;
    agent_context_t context;
    agent_schedule_t schedule;
    agent_worker_t worker;
} fixture_t;

/* A worker of which nothing is due. */
static fixture_t *make_fixture(apr_pool_t *pool)
{
    fixture_t *f = apr_pcalloc(pool, sizeof(*f));

    f->context = (agent_context_t){
        .pool = pool, .config = &f->config, .now = NOW};
    f->schedule = (agent_schedule_t){.context = &f->context,
                                     .claim_at = AGENT_CLOCK_NEVER,
                                     .check_at = AGENT_CLOCK_NEVER};
    f->worker = (agent_worker_t){.context = &f->context,
                                 .schedule = &f->schedule,
                                 .state = AGENT_WORKER_LIVE,
                                 .renew_at = AGENT_CLOCK_NEVER,
                                 .sweep_at = NOW};
    return f;
}

/* A failover may have undone claims, and others may have lost the database. */
static void after_a_reconnect_leases_are_checked_at_once_and_workers_later(
    void **state)
{
    static const agent_session_info_t info;
    fixture_t *f = make_fixture(*state);

    agent_worker_on_connected(&f->worker, false, &info);
    assert_true(f->schedule.check_at == NOW);
    assert_true(f->worker.renew_at == NOW);
    assert_true(f->schedule.claim_at == NOW);
    assert_in_range(apr_time_as_msec(f->worker.sweep_at - NOW), 8000, 12000);
}

static void after_a_reconnect_of_the_bulk_connection_workers_are_swept_later(
    void **state)
{
    fixture_t *f = make_fixture(*state);

    agent_worker_on_bulk_connected(&f->worker, false);
    assert_in_range(apr_time_as_msec(f->worker.sweep_at - NOW), 8000, 12000);
    assert_true(f->schedule.check_at == AGENT_CLOCK_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(
            after_a_reconnect_leases_are_checked_at_once_and_workers_later),
        CHECK_TEST(
            after_a_reconnect_of_the_bulk_connection_workers_are_swept_later),
    };

    return CHECK_RUN(tests);
}
