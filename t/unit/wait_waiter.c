/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_agent/wait/waiter.c */
/* OBJECTS: ../mod_agent/core/allocator.c */
/* OBJECTS: ../mod_agent/wait/dispatch.c */
/* OBJECTS: ../mod_agent/wait/dispatch_queue.c */
/* OBJECTS: ../mod_agent/wait/client_address.c */
/* OBJECTS: ../mod_agent/wait/listen.c */
/* OBJECTS: ../mod_agent/wait/updates.c */
/* OBJECTS: ../mod_agent/wait/watch.c */
/* OBJECTS: ../mod_agent/db/array.c */
/* OBJECTS: ../mod_agent/core/error.c */
/* Who waits, and why each is woken; the database is played. */
#include "wait_fixture.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The same for one whose turn ends at once, and that rests again. */
static agent_wait_t take_and_rest(agent_waiter_t *waiter)
{
    agent_wait_t why = take(waiter);

    agent_wait_end_turn(waiter);
    rest(waiter);
    return why;
}

/* How many signs of life were due so far. */
static unsigned count_beats(const site_t *site, const agent_waiter_t *waiter)
{
    unsigned beats;

    apr_thread_mutex_lock(site->waits->mutex);
    beats = waiter->beats;
    apr_thread_mutex_unlock(site->waits->mutex);
    return beats;
}

/* What the listener does when a notification has come. */
static void notify(const site_t *site, const char *payload)
{
    const agent_listener_events_t *events = &site->waits->listener->events;

    events->notified(events->baton, payload);
    events->drained(events->baton);
}

static void play(int rows, const char *const cells[][4])
{
    answer.rows = rows;
    for (int i = 0; i < rows; i++) {
        memcpy(answer.cells[i], cells[i], sizeof(answer.cells[i]));
    }
}

static void there_are_as_many_places_as_allowed(void **state)
{
    site_t site;
    agent_waiter_t *first;

    open_site(&site, apr_time_from_sec(3600));
    first = enter(&site, RUN, -1, false);
    assert_non_null(first);
    assert_non_null(enter(&site, RUN, -1, false));
    assert_null(enter(&site, OTHER, -1, false));
    agent_wait_leave(first);
    agent_wait_leave(first);
    assert_non_null(enter(&site, OTHER, -1, false));
    assert_null(enter(&site, OTHER, -1, false));
    apr_pool_destroy(site.pool);
}

static bool enters_from(const site_t *site, bool parked)
{
    const agent_wait_entry_t entry = {.key = RUN,
                                      .account_id = OTHER,
                                      .address = 1,
                                      .client_fd = -1,
                                      .parked = parked};
    agent_waiter_t *waiter;
    agent_error_t *err;

    return agent_wait_enter(&waiter, site->waits, &entry, &err, site->pool)
        == APR_SUCCESS;
}

static void parked_and_blocked_waiters_of_an_address_are_counted_apart(
    void **state)
{
    site_t site;
    const agent_waits_limits_t limits = {.parked = 9,
                                         .blocked = 9,
                                         .parked_per_address = 2,
                                         .blocked_per_address = 1,
                                         .threads = {1, 3, 1, count_idle, NULL},
                                         .heartbeat = apr_time_from_sec(3600)};

    open_site_with(&site, &limits);
    assert_true(enters_from(&site, true));
    assert_true(enters_from(&site, false));
    assert_true(enters_from(&site, true));
    assert_false(enters_from(&site, true));
    assert_false(enters_from(&site, false));
    apr_pool_destroy(site.pool);
}

static void the_gravest_reason_comes_first_and_all_are_taken(void **state)
{
    site_t site;
    agent_waiter_t *waiter;

    open_site(&site, apr_time_from_sec(3600));
    waiter = enter(&site, RUN, -1, false);
    apr_thread_mutex_lock(site.waits->mutex);
    agent_wait_wake_locked(waiter, AGENT_WAIT_WOKEN);
    agent_wait_wake_locked(waiter, AGENT_WAIT_HEARTBEAT);
    agent_wait_wake_locked(waiter, AGENT_WAIT_GONE);
    apr_thread_mutex_unlock(site.waits->mutex);
    assert_int_equal(take_and_rest(waiter), AGENT_WAIT_GONE);
    assert_int_equal(waiter->reasons, 0);
    /* Neither the look nor the sign is left out. */
    apr_thread_mutex_lock(site.waits->mutex);
    agent_wait_wake_locked(waiter, AGENT_WAIT_WOKEN);
    agent_wait_wake_locked(waiter, AGENT_WAIT_SIGN);
    apr_thread_mutex_unlock(site.waits->mutex);
    assert_int_equal(take(waiter), AGENT_WAIT_HEARTBEAT);
    apr_pool_destroy(site.pool);
}

static void a_client_that_leaves_is_seen(void **state)
{
    site_t site;
    agent_waiter_t *waiter;
    int sockets[2];

    open_site(&site, apr_time_from_sec(3600));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    waiter = enter(&site, RUN, sockets[0], false);
    close(sockets[1]);
    assert_int_equal(take(waiter), AGENT_WAIT_GONE);
    agent_wait_leave(waiter);
    close(sockets[0]);
    apr_pool_destroy(site.pool);
}

static void signs_of_life_are_due_and_every_sixth_is_a_look(void **state)
{
    site_t site;
    agent_waiter_t *waiter;

    open_site(&site, apr_time_from_msec(5));
    waiter = enter(&site, RUN, -1, false);
    for (unsigned last = 0; last < 12;) {
        unsigned beats;
        bool looks = false;

        /* Who is late takes the reasons of several at once. */
        wait_for_wake(waiter);
        do {
            agent_wait_t why;

            beats = count_beats(&site, waiter);
            while ((why = agent_wait_take_or_rest(waiter, false))
                   != AGENT_WAIT_NOTHING) {
                assert_true(why == AGENT_WAIT_HEARTBEAT
                            || why == AGENT_WAIT_SIGN);
                looks = looks || why == AGENT_WAIT_HEARTBEAT;
                agent_wait_end_turn(waiter);
            }
        } while (count_beats(&site, waiter) != beats);
        assert_int_equal(looks, beats / 6 > last / 6);
        last = beats;
    }
    apr_pool_destroy(site.pool);
}

/* Whether the waiter was woken to look, by what the hear thread then asks. */
static bool is_sent_to_look(const site_t *site, const agent_waiter_t *waiter)
{
    const agent_listener_events_t *events = &site->waits->listener->events;
    unsigned reasons;

    events->drained(events->baton);
    apr_thread_mutex_lock(site->waits->mutex);
    reasons = waiter->reasons;
    apr_thread_mutex_unlock(site->waits->mutex);
    return (reasons & 1U << AGENT_WAIT_WOKEN) != 0;
}

static void ends_that_nobody_told_of_are_asked_for_together(void **state)
{
    static const char *const ended[][4] = {{RUN, NULL, NULL, NULL}};
    site_t site;
    agent_waiter_t *waiter;

    open_site(&site, apr_time_from_msec(5));
    waiter = enter(&site, RUN, -1, false);
    agent_wait_expect_end(waiter);
    play(0, NULL);
    queries = 0;
    while (queries == 0) {
        assert_int_equal(take_and_rest(waiter), AGENT_WAIT_SIGN);
        assert_false(is_sent_to_look(&site, waiter));
    }
    assert_true(count_beats(&site, waiter) >= 6);
    play(1, ended);
    while (!is_sent_to_look(&site, waiter)) {
        assert_int_equal(take_and_rest(waiter), AGENT_WAIT_SIGN);
    }
    /* Until it has looked, each review is a look of its own. */
    assert_false(agent_wait_want_review_locked(waiter));
    apr_pool_destroy(site.pool);
}

static void streams_stop_at_once_and_others_after_the_grace(void **state)
{
    site_t site;
    agent_waiter_t *stream;
    agent_waiter_t *join;

    open_site(&site, apr_time_from_sec(3600));
    stream = enter(&site, RUN, -1, true);
    join = enter(&site, RUN, -1, false);
    agent_waits_stop(site.waits, apr_time_from_sec(3600));
    assert_int_equal(take(stream), AGENT_WAIT_STOPPING);
    assert_false(is_dispatched(join));
    agent_wait_leave(stream);
    assert_null(enter(&site, RUN, -1, false));
    agent_waits_stop(site.waits, 0);
    assert_int_equal(take(join), AGENT_WAIT_STOPPING);
    apr_pool_destroy(site.pool);
}

static void those_who_wait_for_a_key_are_woken(void **state)
{
    site_t site;
    agent_waiter_t *first;
    agent_waiter_t *other;

    open_site(&site, apr_time_from_sec(3600));
    first = enter(&site, RUN, -1, false);
    other = enter(&site, OTHER, -1, false);
    notify(&site, RUN);
    assert_int_equal(take_and_rest(first), AGENT_WAIT_WOKEN);
    assert_false(is_dispatched(other));
    agent_wait_expect_end(other);
    notify(&site, RUN " " OTHER);
    assert_int_equal(take_and_rest(first), AGENT_WAIT_WOKEN);
    assert_int_equal(take_and_rest(other), AGENT_WAIT_WOKEN);
    apr_pool_destroy(site.pool);
}

static void news_is_brought_to_those_who_asked(void **state)
{
    static const char *const rows[][4] = {{RUN, "7", "values", "{}"},
                                          {RUN, "8", "updates", "[]"}};
    const apr_array_header_t *news;
    site_t site;
    agent_waiter_t *stream;
    agent_waiter_t *late;

    open_site(&site, apr_time_from_sec(3600));
    stream = enter(&site, RUN, -1, true);
    late = enter(&site, RUN, -1, true);
    agent_wait_bring_news(stream, 6);
    agent_wait_bring_news(late, 7);
    play(2, rows);
    notify(&site, RUN);
    assert_int_equal(take(stream), AGENT_WAIT_NEWS);
    news = agent_wait_news(stream);
    assert_int_equal(news->nelts, 2);
    assert_int_equal(APR_ARRAY_IDX(news, 1, agent_wait_event_t).seq, 8);
    assert_string_equal(APR_ARRAY_IDX(news, 1, agent_wait_event_t).name,
                        "updates");
    agent_wait_end_turn(stream);
    assert_int_equal(take(late), AGENT_WAIT_NEWS);
    assert_int_equal(agent_wait_news(late)->nelts, 1);
    agent_wait_end_turn(late);
    /* The same again is no news. */
    notify(&site, RUN);
    assert_int_equal(agent_wait_take(stream), AGENT_WAIT_NOTHING);
    apr_pool_destroy(site.pool);
}

/* A heartbeat's look, say, has found more than what was at hand. */
static void news_that_a_look_has_overtaken_is_no_reason(void **state)
{
    static const char *const seven[][4] = {{RUN, "7", "values", "{}"}};
    static const char *const ten[][4] = {{RUN, "10", "values", "{}"}};
    site_t site;
    agent_waiter_t *waiter;

    open_site(&site, apr_time_from_sec(3600));
    waiter = enter(&site, RUN, -1, true);
    agent_wait_bring_news(waiter, 6);
    play(1, seven);
    notify(&site, RUN);
    agent_wait_bring_news(waiter, 9);
    assert_int_equal(agent_wait_take(waiter), AGENT_WAIT_NOTHING);
    play(1, ten);
    notify(&site, RUN);
    agent_wait_bring_news(waiter, 9);
    assert_int_equal(agent_wait_take(waiter), AGENT_WAIT_NEWS);
    assert_int_equal(agent_wait_news(waiter)->nelts, 1);
    agent_wait_end_turn(waiter);
    apr_pool_destroy(site.pool);
}

static void streams_look_for_themselves_when_it_is_not_simple(void **state)
{
    static const char *const hole[][4] = {{RUN, "9", "values", "{}"}};
    static const char *const unsaid[][4] = {{RUN, "7", "values", "{}"},
                                            {RUN, NULL, NULL, NULL}};
    site_t site;
    agent_waiter_t *stream;

    open_site(&site, apr_time_from_sec(3600));
    stream = enter(&site, RUN, -1, true);
    agent_wait_bring_news(stream, 6);
    play(1, hole);
    notify(&site, RUN);
    assert_int_equal(take_and_rest(stream), AGENT_WAIT_WOKEN);
    agent_wait_bring_news(stream, 6);
    play(2, unsaid);
    notify(&site, RUN);
    assert_int_equal(take_and_rest(stream), AGENT_WAIT_WOKEN);
    assert_null(agent_wait_news(stream));
    agent_wait_bring_news(stream, 6);
    query_fails = true;
    notify(&site, RUN);
    query_fails = false;
    assert_int_equal(take_and_rest(stream), AGENT_WAIT_WOKEN);
    apr_pool_destroy(site.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(there_are_as_many_places_as_allowed),
        CHECK_TEST(parked_and_blocked_waiters_of_an_address_are_counted_apart),
        CHECK_TEST(the_gravest_reason_comes_first_and_all_are_taken),
        CHECK_TEST(a_client_that_leaves_is_seen),
        CHECK_TEST(signs_of_life_are_due_and_every_sixth_is_a_look),
        CHECK_TEST(ends_that_nobody_told_of_are_asked_for_together),
        CHECK_TEST(streams_stop_at_once_and_others_after_the_grace),
        CHECK_TEST(those_who_wait_for_a_key_are_woken),
        CHECK_TEST(news_is_brought_to_those_who_asked),
        CHECK_TEST(news_that_a_look_has_overtaken_is_no_reason),
        CHECK_TEST(streams_look_for_themselves_when_it_is_not_simple)};

    return CHECK_RUN(tests);
}
