/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: wait/registry.c */
/* OBJECTS: wait/waiter.c */
/* OBJECTS: wait/table.c */
/* OBJECTS: wait/dispatch.c */
/* OBJECTS: wait/dispatch_queue.c */
/* OBJECTS: wait/listen.c */
/* OBJECTS: wait/updates.c wait/api_keys.c core/clock.c */
/* OBJECTS: wait/watch.c */
/* OBJECTS: wait/epoll.c */
/* OBJECTS: wait/timer.c */
/* OBJECTS: wait/client_address.c */
/* OBJECTS: wait/slot_share.c */
/* OBJECTS: core/allocator.c */
/* OBJECTS: core/id_list.c */
/* OBJECTS: core/thread.c */
/* OBJECTS: core/throttle.c */
/* OBJECTS: db/array.c */
/* OBJECTS: core/error.c core/limit.c */
/* The end of API keys, with a fake database. */
#include "wait_fixture.h"

#include "../../mod_agent/core/clock.h"

/* Of a thread that blocks: no turn of it can take the reason before. */
static agent_waiter_t *register_with_key(const fixture_t *fixture,
                                         const agent_identity_t *identity)
{
    const agent_waiter_params_t params = {.key = RUN,
                                          .deployment_id = OTHER,
                                          .identity = identity,
                                          .client_fd = -1};
    agent_waiter_t *waiter = NULL;
    agent_error_t *err;

    assert_int_equal(agent_waiter_register(&waiter, fixture->registry, &params,
                                           &err, fixture->pool),
                     APR_SUCCESS);
    return waiter;
}

static void the_end_of_an_api_key_wakes_its_waiters(void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = 5,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    apr_time_t now = agent_clock_now();
    const agent_identity_t valid = {
        .key_id = "valid", .checked_at = now, .expires_at = AGENT_CLOCK_NEVER};
    const agent_identity_t ended = {.key_id = "ended",
                                    .checked_at = now - apr_time_from_sec(9),
                                    .expires_at = AGENT_CLOCK_NEVER};
    const agent_identity_t expired = {
        .key_id = "expired", .checked_at = now, .expires_at = now};
    fixture_t fixture;
    agent_waiter_t *waiters[5];

    next_result = (agent_db_result_t){.rows = 1, .cells = {{"ended"}}};
    open_fixture_with(&fixture, &limits);
    waiters[0] = register_with_key(&fixture, &valid);
    waiters[1] = register_with_key(&fixture, NULL);
    for (int i = 2; i < 4; i++) {
        waiters[i] = register_with_key(&fixture, &ended);
    }
    waiters[4] = register_with_key(&fixture, &expired);
    for (int i = 2; i < 5; i++) {
        assert_int_equal(agent_waiter_block(waiters[i], -1),
                         AGENT_REASON_KEY_ENDED);
        agent_waiter_unregister(waiters[i]);
    }
    assert_int_equal(agent_waiter_block(waiters[0], 0), AGENT_REASON_NONE);
    assert_int_equal(agent_waiter_block(waiters[1], 0), AGENT_REASON_NONE);
    apr_pool_destroy(fixture.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_end_of_an_api_key_wakes_its_waiters)};

    return CHECK_RUN(tests);
}
