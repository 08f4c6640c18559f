/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: wait/waiter_registry.c core/lock.c */
/* OBJECTS: wait/waiter.c */
/* OBJECTS: wait/waiter_table.c */
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
/* OBJECTS: core/child_thread.c */
/* OBJECTS: core/throttle.c */
/* OBJECTS: db/array.c */
/* OBJECTS: core/error.c core/limit.c */
/* Waiters and their wake reasons, with a fake database. */
#include "wait_fixture.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../mod_agent/wait/timer.h"
#include "../../mod_agent/wait/updates.h"

/* Takes the reason of a waiter whose turn ends at once; it becomes idle. */
static agent_wake_reason_t take_and_idle(agent_waiter_t *waiter)
{
    agent_wake_reason_t reason = take(waiter);

    agent_waiter_end_turn(waiter);
    make_idle(waiter);
    return reason;
}

/* The number of heartbeats so far. */
static unsigned count_heartbeats(const fixture_t *fixture,
                                 const agent_waiter_t *waiter)
{
    unsigned heartbeats;

    agent_lock_take(fixture->registry->lock);
    heartbeats = waiter->heartbeats;
    agent_lock_release(fixture->registry->lock);
    return heartbeats;
}

/* The listener's handling of a notification. */
static void notify(const fixture_t *fixture, const char *payload)
{
    const agent_listener_events_t *events = &fixture->registry->listener
                                                 ->events;

    events->notified(events->baton, payload);
    events->drained(events->baton);
}

static void set_result(int rows, const char *const cells[][4])
{
    next_result.rows = rows;
    for (int i = 0; i < rows; i++) {
        memcpy(next_result.cells[i], cells[i], sizeof(next_result.cells[i]));
    }
}

static void waiters_are_registered_up_to_the_limit(void **state)
{
    fixture_t fixture;
    agent_waiter_t *first;

    open_fixture(&fixture, apr_time_from_sec(3600));
    first = register_parked(&fixture, RUN, -1, false);
    assert_non_null(first);
    assert_non_null(register_parked(&fixture, RUN, -1, false));
    assert_null(register_parked(&fixture, OTHER, -1, false));
    agent_waiter_unregister(first);
    agent_waiter_unregister(first);
    assert_non_null(register_parked(&fixture, OTHER, -1, false));
    assert_null(register_parked(&fixture, OTHER, -1, false));
    apr_pool_destroy(fixture.pool);
}

static bool registers_from(const fixture_t *fixture, bool parked)
{
    const agent_waiter_params_t params = {.key = RUN,
                                          .deployment_id = OTHER,
                                          .address = 1,
                                          .client_fd = -1,
                                          .parked = parked};
    agent_waiter_t *waiter;
    agent_error_t *err;

    return agent_waiter_register(&waiter, fixture->registry, &params, &err,
                                 fixture->pool)
        == APR_SUCCESS;
}

static void parked_and_blocked_waiters_of_an_address_have_separate_limits(
    void **state)
{
    fixture_t fixture;
    const agent_waiter_limits_t limits = {
        .parked = 9,
        .blocked = 9,
        .parked_per_address = 2,
        .blocked_per_address = 1,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};

    open_fixture_with(&fixture, &limits);
    assert_true(registers_from(&fixture, true));
    assert_true(registers_from(&fixture, false));
    assert_true(registers_from(&fixture, true));
    assert_false(registers_from(&fixture, true));
    assert_false(registers_from(&fixture, false));
    apr_pool_destroy(fixture.pool);
}

/* A waiter of the deployment; NULL when it is refused. */
static agent_waiter_t *register_of(const fixture_t *fixture,
                                   const char *deployment_id, bool parked)
{
    const agent_waiter_params_t params = {.key = RUN,
                                          .deployment_id = deployment_id,
                                          .client_fd = -1,
                                          .parked = parked};
    agent_waiter_t *waiter = NULL;
    agent_error_t *err = NULL;

    if (agent_waiter_register(&waiter, fixture->registry, &params, &err,
                              fixture->pool)
        != APR_SUCCESS) {
        assert_int_equal(err->id, AGENT_E_OVERLOADED);
        assert_int_not_equal(
            agent_waiter_check(fixture->registry, &params, &err, fixture->pool),
            APR_SUCCESS);
        return NULL;
    }
    return waiter;
}

static void a_deployment_leaves_the_guaranteed_slots_of_others(void **state)
{
    fixture_t fixture;
    const agent_waiter_limits_t limits = {
        .parked = 8,
        .blocked = 4,
        .deployments = 2,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    agent_waiter_t *waiter = NULL;

    open_fixture_with(&fixture, &limits);
    /* Two slots are guaranteed to each, of those that block one. */
    for (int i = 0; i < 6; i++) {
        waiter = register_of(&fixture, RUN, true);
        assert_non_null(waiter);
    }
    assert_null(register_of(&fixture, RUN, true));
    for (int i = 0; i < 3; i++) {
        assert_non_null(register_of(&fixture, RUN, false));
    }
    assert_null(register_of(&fixture, RUN, false));
    assert_non_null(register_of(&fixture, OTHER, false));
    assert_non_null(register_of(&fixture, OTHER, true));
    assert_null(register_of(&fixture, RUN, true));
    /* A slot that becomes free is anybody's. */
    agent_waiter_unregister(waiter);
    assert_non_null(register_of(&fixture, RUN, true));
    assert_non_null(register_of(&fixture, OTHER, true));
    assert_null(register_of(&fixture, OTHER, true));
    apr_pool_destroy(fixture.pool);
}

static void the_first_reason_of_the_enum_is_reported_and_all_are_taken(
    void **state)
{
    fixture_t fixture;
    agent_waiter_t *waiter;

    open_fixture(&fixture, apr_time_from_sec(3600));
    waiter = register_parked(&fixture, RUN, -1, false);
    agent_lock_take(fixture.registry->lock);
    agent_dispatch_wake_locked(waiter, AGENT_REASON_QUERY);
    agent_dispatch_wake_locked(waiter, AGENT_REASON_HEARTBEAT_QUERY);
    agent_dispatch_wake_locked(waiter, AGENT_REASON_CLIENT_GONE);
    agent_lock_release(fixture.registry->lock);
    assert_int_equal(take_and_idle(waiter), AGENT_REASON_CLIENT_GONE);
    assert_int_equal(waiter->reasons, 0);
    /* A query and a heartbeat become one reason. */
    agent_lock_take(fixture.registry->lock);
    agent_dispatch_wake_locked(waiter, AGENT_REASON_QUERY);
    agent_dispatch_wake_locked(waiter, AGENT_REASON_HEARTBEAT);
    agent_lock_release(fixture.registry->lock);
    assert_int_equal(take(waiter), AGENT_REASON_HEARTBEAT_QUERY);
    apr_pool_destroy(fixture.pool);
}

static void a_client_that_disconnects_wakes_its_waiter(void **state)
{
    fixture_t fixture;
    agent_waiter_t *waiter;
    int sockets[2];

    open_fixture(&fixture, apr_time_from_sec(3600));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    waiter = register_parked(&fixture, RUN, sockets[0], false);
    close(sockets[1]);
    assert_int_equal(take(waiter), AGENT_REASON_CLIENT_GONE);
    agent_waiter_unregister(waiter);
    close(sockets[0]);
    apr_pool_destroy(fixture.pool);
}

static void a_client_that_half_closes_wakes_its_waiter_once(void **state)
{
    fixture_t fixture;
    agent_waiter_t *waiter;
    int sockets[2];

    open_fixture(&fixture, apr_time_from_sec(3600));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    waiter = register_parked(&fixture, RUN, sockets[0], true);
    shutdown(sockets[1], SHUT_WR);
    assert_int_equal(take_and_idle(waiter), AGENT_REASON_HALF_CLOSED);
    assert_int_equal(agent_waiter_take_or_idle(waiter, false),
                     AGENT_REASON_NONE);
    /* Another reason would be taken together with the first. */
    agent_waiter_registry_stop(fixture.registry, 0);
    assert_int_equal(take_and_idle(waiter), AGENT_REASON_STOPPING);
    close(sockets[1]);
    assert_int_equal(take_and_idle(waiter), AGENT_REASON_CLIENT_GONE);
    agent_waiter_unregister(waiter);
    close(sockets[0]);
    apr_pool_destroy(fixture.pool);
}

static void every_sixth_heartbeat_polls(void **state)
{
    fixture_t fixture;
    agent_waiter_t *waiter;

    open_fixture(&fixture, apr_time_from_msec(5));
    waiter = register_parked(&fixture, RUN, -1, false);
    for (unsigned last = 0; last < 12;) {
        unsigned heartbeats;
        bool polls = false;

        /* A slow test takes several reasons together. */
        wait_for_wake(waiter);
        do {
            agent_wake_reason_t reason;

            heartbeats = count_heartbeats(&fixture, waiter);
            while ((reason = agent_waiter_take_or_idle(waiter, false))
                   != AGENT_REASON_NONE) {
                assert_true(reason == AGENT_REASON_HEARTBEAT_QUERY
                            || reason == AGENT_REASON_HEARTBEAT);
                polls = polls || reason == AGENT_REASON_HEARTBEAT_QUERY;
                agent_waiter_end_turn(waiter);
            }
        } while (count_heartbeats(&fixture, waiter) != heartbeats);
        assert_int_equal(polls, heartbeats / 6 > last / 6);
        last = heartbeats;
    }
    apr_pool_destroy(fixture.pool);
}

static agent_waiter_t *register_timeout(const fixture_t *fixture, int msec)
{
    const agent_waiter_params_t params = {.key = RUN,
                                          .deployment_id = OTHER,
                                          .client_fd = -1,
                                          .parked = true,
                                          .timeout = apr_time_from_msec(msec)};
    agent_waiter_t *waiter;
    agent_error_t *err;

    assert_int_equal(agent_waiter_register(&waiter, fixture->registry, &params,
                                           &err, fixture->pool),
                     APR_SUCCESS);
    make_idle(waiter);
    return waiter;
}

static void a_timeout_wakes_its_waiter_once(void **state)
{
    const agent_waiter_limits_t limits = {
        .parked = 4,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    apr_time_t start = apr_time_now();
    fixture_t fixture;
    agent_waiter_t *late;
    agent_waiter_t *early;

    open_fixture_with(&fixture, &limits);
    register_timeout(&fixture, 3600 * 1000);
    late = register_timeout(&fixture, 40);
    early = register_timeout(&fixture, 20);
    agent_waiter_unregister(register_timeout(&fixture, 1));
    wait_for_wake(late);
    assert_true(apr_time_now() - start >= apr_time_from_msec(40));
    wait_for_wake(early);
    assert_int_equal(take_and_idle(late), AGENT_REASON_QUERY);
    assert_int_equal(take_and_idle(early), AGENT_REASON_QUERY);
    agent_lock_take(fixture.registry->lock);
    assert_true(agent_timer_due_locked(fixture.registry) - start
                > apr_time_from_sec(1800));
    agent_lock_release(fixture.registry->lock);
    apr_pool_destroy(fixture.pool);
}

/* Whether the query of the listen thread makes the waiter query for itself. */
static bool has_to_query(const fixture_t *fixture, const agent_waiter_t *waiter)
{
    const agent_listener_events_t *events = &fixture->registry->listener
                                                 ->events;
    unsigned reasons;

    events->drained(events->baton);
    agent_lock_take(fixture->registry->lock);
    reasons = waiter->reasons;
    agent_lock_release(fixture->registry->lock);
    return (reasons & 1U << AGENT_REASON_QUERY) != 0;
}

static void ends_without_notification_are_polled_with_one_query(void **state)
{
    static const char *const ended[][4] = {{RUN, NULL, NULL, NULL}};
    fixture_t fixture;
    agent_waiter_t *waiter;

    open_fixture(&fixture, apr_time_from_msec(5));
    waiter = register_parked(&fixture, RUN, -1, false);
    agent_waiter_subscribe_end(waiter);
    set_result(0, NULL);
    queries = 0;
    while (queries == 0) {
        assert_int_equal(take_and_idle(waiter), AGENT_REASON_HEARTBEAT);
        assert_false(has_to_query(&fixture, waiter));
    }
    assert_true(count_heartbeats(&fixture, waiter) >= 6);
    set_result(1, ended);
    while (!has_to_query(&fixture, waiter)) {
        assert_int_equal(take_and_idle(waiter), AGENT_REASON_HEARTBEAT);
    }
    /* Until it has queried, each poll is a query of its own. */
    assert_false(agent_updates_request_locked(waiter));
    apr_pool_destroy(fixture.pool);
}

static void streams_stop_at_once_and_other_waiters_after_the_grace(void **state)
{
    fixture_t fixture;
    agent_waiter_t *stream;
    agent_waiter_t *join;

    open_fixture(&fixture, apr_time_from_sec(3600));
    stream = register_parked(&fixture, RUN, -1, true);
    join = register_parked(&fixture, RUN, -1, false);
    agent_waiter_registry_stop(fixture.registry, apr_time_from_sec(3600));
    assert_int_equal(take(stream), AGENT_REASON_STOPPING);
    assert_false(is_dispatched(join));
    agent_waiter_unregister(stream);
    assert_null(register_parked(&fixture, RUN, -1, false));
    agent_waiter_registry_stop(fixture.registry, 0);
    assert_int_equal(take(join), AGENT_REASON_STOPPING);
    apr_pool_destroy(fixture.pool);
}

static void a_notification_wakes_the_waiters_of_its_ids(void **state)
{
    fixture_t fixture;
    agent_waiter_t *first;
    agent_waiter_t *other;

    open_fixture(&fixture, apr_time_from_sec(3600));
    first = register_parked(&fixture, RUN, -1, false);
    other = register_parked(&fixture, OTHER, -1, false);
    notify(&fixture, RUN);
    assert_int_equal(take_and_idle(first), AGENT_REASON_QUERY);
    assert_false(is_dispatched(other));
    agent_waiter_subscribe_end(other);
    notify(&fixture, RUN " " OTHER);
    assert_int_equal(take_and_idle(first), AGENT_REASON_QUERY);
    assert_false(is_dispatched(other));
    notify(&fixture, OTHER "!");
    assert_int_equal(take_and_idle(other), AGENT_REASON_QUERY);
    apr_pool_destroy(fixture.pool);
}

static void events_are_delivered_to_subscribed_waiters(void **state)
{
    static const char *const rows[][4] = {{RUN, "7", "values", "{}"},
                                          {RUN, "8", "updates", "[]"}};
    const apr_array_header_t *updates;
    fixture_t fixture;
    agent_waiter_t *stream;
    agent_waiter_t *late;

    open_fixture(&fixture, apr_time_from_sec(3600));
    stream = register_parked(&fixture, RUN, -1, true);
    late = register_parked(&fixture, RUN, -1, true);
    agent_waiter_subscribe(stream, 6);
    agent_waiter_subscribe(late, 7);
    set_result(2, rows);
    notify(&fixture, RUN);
    assert_int_equal(take(stream), AGENT_REASON_UPDATES);
    updates = agent_waiter_updates(stream);
    assert_int_equal(updates->nelts, 2);
    assert_int_equal(APR_ARRAY_IDX(updates, 1, agent_run_event_t).seq, 8);
    assert_string_equal(APR_ARRAY_IDX(updates, 1, agent_run_event_t).name,
                        "updates");
    agent_waiter_end_turn(stream);
    assert_int_equal(take(late), AGENT_REASON_UPDATES);
    assert_int_equal(agent_waiter_updates(late)->nelts, 1);
    agent_waiter_end_turn(late);
    /* Events are delivered once. */
    notify(&fixture, RUN);
    assert_int_equal(agent_waiter_take_reason(stream), AGENT_REASON_NONE);
    apr_pool_destroy(fixture.pool);
}

/* For example, the poll of a heartbeat has read newer events. */
static void events_that_were_queried_are_not_delivered(void **state)
{
    static const char *const seven[][4] = {{RUN, "7", "values", "{}"}};
    static const char *const ten[][4] = {{RUN, "10", "values", "{}"}};
    fixture_t fixture;
    agent_waiter_t *waiter;

    open_fixture(&fixture, apr_time_from_sec(3600));
    waiter = register_parked(&fixture, RUN, -1, true);
    agent_waiter_subscribe(waiter, 6);
    set_result(1, seven);
    notify(&fixture, RUN);
    agent_waiter_subscribe(waiter, 9);
    assert_int_equal(agent_waiter_take_reason(waiter), AGENT_REASON_NONE);
    set_result(1, ten);
    notify(&fixture, RUN);
    agent_waiter_subscribe(waiter, 9);
    assert_int_equal(agent_waiter_take_reason(waiter), AGENT_REASON_UPDATES);
    assert_int_equal(agent_waiter_updates(waiter)->nelts, 1);
    agent_waiter_end_turn(waiter);
    apr_pool_destroy(fixture.pool);
}

static void streams_query_for_themselves_after_a_gap_or_an_error(void **state)
{
    static const char *const gap[][4] = {{RUN, "9", "values", "{}"}};
    static const char *const without_event[][4] = {{RUN, "7", "values", "{}"},
                                                   {RUN, NULL, NULL, NULL}};
    fixture_t fixture;
    agent_waiter_t *stream;

    open_fixture(&fixture, apr_time_from_sec(3600));
    stream = register_parked(&fixture, RUN, -1, true);
    agent_waiter_subscribe(stream, 6);
    set_result(1, gap);
    notify(&fixture, RUN);
    assert_int_equal(take_and_idle(stream), AGENT_REASON_QUERY);
    agent_waiter_subscribe(stream, 6);
    set_result(2, without_event);
    notify(&fixture, RUN);
    assert_int_equal(take_and_idle(stream), AGENT_REASON_QUERY);
    assert_null(agent_waiter_updates(stream));
    agent_waiter_subscribe(stream, 6);
    query_error = AGENT_E_UNAVAILABLE;
    notify(&fixture, RUN);
    query_error = AGENT_E_COUNT;
    assert_int_equal(take_and_idle(stream), AGENT_REASON_QUERY);
    apr_pool_destroy(fixture.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(waiters_are_registered_up_to_the_limit),
        CHECK_TEST(
            parked_and_blocked_waiters_of_an_address_have_separate_limits),
        CHECK_TEST(a_deployment_leaves_the_guaranteed_slots_of_others),
        CHECK_TEST(the_first_reason_of_the_enum_is_reported_and_all_are_taken),
        CHECK_TEST(a_client_that_disconnects_wakes_its_waiter),
        CHECK_TEST(a_client_that_half_closes_wakes_its_waiter_once),
        CHECK_TEST(every_sixth_heartbeat_polls),
        CHECK_TEST(a_timeout_wakes_its_waiter_once),
        CHECK_TEST(ends_without_notification_are_polled_with_one_query),
        CHECK_TEST(streams_stop_at_once_and_other_waiters_after_the_grace),
        CHECK_TEST(a_notification_wakes_the_waiters_of_its_ids),
        CHECK_TEST(events_are_delivered_to_subscribed_waiters),
        CHECK_TEST(events_that_were_queried_are_not_delivered),
        CHECK_TEST(streams_query_for_themselves_after_a_gap_or_an_error)};

    return CHECK_RUN(tests);
}
