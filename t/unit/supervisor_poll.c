/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/base/poll.c core/clock.c */
/* The descriptors that the loop waits for; see supervisor/base/poll.h. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../mod_agent/supervisor/base/context.h"
#include "../../mod_agent/supervisor/base/poll.h"

/* More than are handled in one iteration. */
#define MANY 300

typedef struct fixture_t {
    agent_context_t context;
    agent_poll_t set;
    agent_poll_watch_t watch;
    /* [0] is read, [1] is written. */
    int pipe[2];
    int calls;
    /* The handler ends it, or closes it; NULL: none. */
    agent_poll_watch_t *other;
    bool is_closing;
} fixture_t;

static void on_ready(void *part, void *item)
{
    fixture_t *f = part;

    assert_null(item);
    f->calls++;
    if (f->other != NULL && f->is_closing) {
        agent_poll_close_watch(f->other);
    }
    else if (f->other != NULL) {
        agent_poll_set(&f->set, f->other, 0);
    }
}

static void on_many(void *part, void *item)
{
    int *calls = item;

    (*calls)++;
}

static fixture_t *make_fixture(apr_pool_t *pool)
{
    fixture_t *f = apr_pcalloc(pool, sizeof(*f));

    agent_poll_init(&f->set, &f->context);
    assert_true(agent_poll_open(&f->set));
    assert_int_equal(pipe2(f->pipe, O_CLOEXEC), 0);
    f->watch = (agent_poll_watch_t){
        .fd = f->pipe[0], .handler = on_ready, .part = f};
    return f;
}

static void drop_fixture(fixture_t *f)
{
    agent_poll_close(&f->set);
    close(f->pipe[0]);
    close(f->pipe[1]);
}

/* An iteration that does not wait; returns how many handlers it called. */
static int iterate(fixture_t *f)
{
    f->calls = 0;
    agent_poll_wait(&f->set, 0);
    return f->calls;
}

static void make_ready(const fixture_t *f)
{
    assert_int_equal(write(f->pipe[1], "x", 1), 1);
}

static void a_handler_is_called_as_long_as_its_descriptor_is_ready(void **state)
{
    fixture_t *f = make_fixture(*state);
    char byte;

    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    assert_int_equal(iterate(f), 0);
    make_ready(f);
    assert_int_equal(iterate(f), 1);
    assert_int_equal(iterate(f), 1);
    assert_int_equal(read(f->pipe[0], &byte, 1), 1);
    assert_int_equal(iterate(f), 0);
    drop_fixture(f);
}

static void a_wait_ends_when_a_descriptor_is_ready(void **state)
{
    fixture_t *f = make_fixture(*state);

    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    make_ready(f);
    agent_poll_wait(&f->set, AGENT_CLOCK_NEVER);
    assert_int_equal(f->calls, 1);
    assert_true(f->context.now > 0);
    drop_fixture(f);
}

/* A runner that is not read may end: its pipe would keep the loop awake. */
static void a_descriptor_without_events_is_not_waited_for(void **state)
{
    fixture_t *f = make_fixture(*state);

    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    agent_poll_set(&f->set, &f->watch, 0);
    close(f->pipe[1]);
    assert_int_equal(iterate(f), 0);
    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    assert_int_equal(iterate(f), 1);
    f->pipe[1] = -1;
    drop_fixture(f);
}

static void the_events_of_a_descriptor_may_change(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->watch.fd = f->pipe[1];
    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    assert_int_equal(iterate(f), 0);
    agent_poll_set(&f->set, &f->watch, EPOLLOUT);
    assert_int_equal(iterate(f), 1);
    drop_fixture(f);
}

/* Two are ready, and each ends the other: by closing it, or without. */
static void end_each_other(void **state, bool is_closing)
{
    fixture_t *f = make_fixture(*state);
    fixture_t *other = make_fixture(*state);

    f->other = &other->watch;
    other->other = &f->watch;
    f->is_closing = other->is_closing = is_closing;
    agent_poll_close(&other->set);
    other->set = f->set;
    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    agent_poll_set(&f->set, &other->watch, EPOLLIN);
    make_ready(f);
    make_ready(other);
    agent_poll_wait(&f->set, 0);
    assert_int_equal(f->calls + other->calls, 1);
    other->set.fd = -1;
    f->pipe[0] = f->watch.fd;
    other->pipe[0] = other->watch.fd;
    drop_fixture(other);
    drop_fixture(f);
}

static void a_watch_that_a_handler_ends_is_not_handled(void **state)
{
    end_each_other(state, false);
}

static void a_descriptor_that_a_handler_closes_is_not_handled(void **state)
{
    end_each_other(state, true);
}

/* libpq closes a socket and opens another one, which gets the same number. */
static void another_descriptor_of_the_same_number_is_waited_for(void **state)
{
    fixture_t *f = make_fixture(*state);
    int other[2];

    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    assert_int_equal(pipe2(other, O_CLOEXEC), 0);
    assert_int_equal(dup2(other[0], f->pipe[0]), f->pipe[0]);
    assert_int_equal(write(other[1], "x", 1), 1);
    assert_int_equal(iterate(f), 0);
    agent_poll_replace(&f->watch, f->pipe[0]);
    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    assert_int_equal(iterate(f), 1);
    close(other[0]);
    close(other[1]);
    drop_fixture(f);
}

static void one_that_was_not_replaced_after_all_is_waited_for(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->watch.fd = f->pipe[1];
    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    agent_poll_replace(&f->watch, f->pipe[1]);
    assert_int_equal(agent_poll_set(&f->set, &f->watch, EPOLLOUT), APR_SUCCESS);
    assert_int_equal(iterate(f), 1);
    drop_fixture(f);
}

static void a_descriptor_that_cannot_be_waited_for_is_an_error(void **state)
{
    fixture_t *f = make_fixture(*state);

    /* epoll takes no files. */
    f->watch.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(f->watch.fd >= 0);
    assert_int_equal(agent_poll_add(&f->set, &f->watch),
                     APR_FROM_OS_ERROR(EPERM));
    assert_int_equal(agent_poll_set(&f->set, &f->watch, EPOLLIN),
                     APR_FROM_OS_ERROR(EPERM));
    assert_int_equal(f->watch.events, 0);
    agent_poll_close_watch(&f->watch);
    drop_fixture(f);
}

/* Descriptors in the set. */
static int count_added(const fixture_t *f)
{
    char path[64];
    char line[200];
    FILE *info;
    int count = 0;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", f->set.fd);
    info = fopen(path, "re");
    assert_non_null(info);
    while (fgets(line, sizeof(line), info) != NULL) {
        count += strncmp(line, "tfd:", 4) == 0;
    }
    fclose(info);
    return count;
}

/* The kernel could refuse it when it is waited for again. */
static void a_descriptor_that_is_not_waited_for_stays_in_the_set(void **state)
{
    fixture_t *f = make_fixture(*state);

    assert_int_equal(agent_poll_add(&f->set, &f->watch), APR_SUCCESS);
    assert_int_equal(count_added(f), 1);
    make_ready(f);
    assert_int_equal(iterate(f), 0);
    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    assert_int_equal(iterate(f), 1);
    agent_poll_set(&f->set, &f->watch, 0);
    assert_int_equal(iterate(f), 0);
    assert_int_equal(count_added(f), 1);
    drop_fixture(f);
}

/* The end of the other side does not keep the loop awake. */
static void without_events_the_end_is_reported_once_at_most(void **state)
{
    fixture_t *f = make_fixture(*state);
    struct epoll_event event;

    agent_poll_add(&f->set, &f->watch);
    close(f->pipe[1]);
    assert_int_equal(iterate(f), 0);
    assert_int_equal(epoll_wait(f->set.fd, &event, 1, 0), 0);
    f->pipe[1] = -1;
    drop_fixture(f);
}

/* libcurl keeps a connection for its next request. */
static void a_removed_descriptor_stays_open(void **state)
{
    fixture_t *f = make_fixture(*state);

    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    agent_poll_remove(&f->set, &f->watch);
    assert_int_equal(f->watch.fd, -1);
    assert_int_equal(count_added(f), 0);
    make_ready(f);
    assert_int_equal(iterate(f), 0);
    drop_fixture(f);
}

/* Another library closed it, and did not say so. */
static void a_descriptor_that_was_closed_is_an_error(void **state)
{
    fixture_t *f = make_fixture(*state);

    agent_poll_set(&f->set, &f->watch, EPOLLIN);
    close(f->pipe[0]);
    assert_int_equal(agent_poll_set(&f->set, &f->watch, EPOLLOUT),
                     APR_FROM_OS_ERROR(EBADF));
    assert_int_equal(f->watch.events, 0);
    f->pipe[0] = -1;
    drop_fixture(f);
}

static void no_descriptor_is_not_an_error(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->watch.fd = -1;
    assert_int_equal(agent_poll_add(&f->set, &f->watch), APR_SUCCESS);
    assert_int_equal(agent_poll_set(&f->set, &f->watch, EPOLLIN), APR_SUCCESS);
    assert_int_equal(agent_poll_set(&f->set, &f->watch, 0), APR_SUCCESS);
    agent_poll_remove(&f->set, &f->watch);
    agent_poll_close_watch(&f->watch);
    assert_int_equal(iterate(f), 0);
    drop_fixture(f);
}

static void many_ready_descriptors_take_turns(void **state)
{
    fixture_t *f = make_fixture(*state);
    agent_poll_watch_t *watches = apr_pcalloc(*state, MANY * sizeof(*watches));
    int *calls = apr_pcalloc(*state, MANY * sizeof(*calls));

    make_ready(f);
    for (int i = 0; i < MANY; i++) {
        watches[i] = (agent_poll_watch_t){
            .fd = fcntl(f->pipe[0], F_DUPFD_CLOEXEC, 0),
            .handler = on_many,
            .item = &calls[i]};
        assert_true(watches[i].fd >= 0);
        agent_poll_set(&f->set, &watches[i], EPOLLIN);
    }
    for (int i = 0; i < 4; i++) {
        iterate(f);
    }
    for (int i = 0; i < MANY; i++) {
        assert_in_range(calls[i], 1, 3);
        agent_poll_close_watch(&watches[i]);
    }
    drop_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_handler_is_called_as_long_as_its_descriptor_is_ready),
        CHECK_TEST(a_wait_ends_when_a_descriptor_is_ready),
        CHECK_TEST(a_descriptor_without_events_is_not_waited_for),
        CHECK_TEST(the_events_of_a_descriptor_may_change),
        CHECK_TEST(a_watch_that_a_handler_ends_is_not_handled),
        CHECK_TEST(a_descriptor_that_a_handler_closes_is_not_handled),
        CHECK_TEST(another_descriptor_of_the_same_number_is_waited_for),
        CHECK_TEST(one_that_was_not_replaced_after_all_is_waited_for),
        CHECK_TEST(a_descriptor_that_cannot_be_waited_for_is_an_error),
        CHECK_TEST(a_descriptor_that_is_not_waited_for_stays_in_the_set),
        CHECK_TEST(without_events_the_end_is_reported_once_at_most),
        CHECK_TEST(a_removed_descriptor_stays_open),
        CHECK_TEST(a_descriptor_that_was_closed_is_an_error),
        CHECK_TEST(no_descriptor_is_not_an_error),
        CHECK_TEST(many_ready_descriptors_take_turns),
    };

    return CHECK_RUN(tests);
}
