/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/ db/query.c db/limits.c db/send.c db/connection.c db/array.c */
/* Waiting for a connection; see db/connection.h. */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <sys/time.h>

#include <apr_time.h>

#include "../../mod_agent/db/connection.h"

/* The socket of the connection is a pipe. */
static int fds[2];
static volatile sig_atomic_t signals;

int PQsocket(const PGconn *conn)
{
    return fds[0];
}

/* The second signal makes the socket ready. */
static void on_alarm(int number)
{
    if (++signals == 2 && write(fds[1], "x", 1) != 1) {
        _exit(1);
    }
}

static void a_signal_does_not_end_a_wait(void **state)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {.it_interval = {.tv_usec = 20000},
                              .it_value = {.tv_usec = 20000}};
    const struct itimerval off = {{0}};
    agent_db_t db = {0};
    bool is_ready;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    is_ready = agent_db_wait(&db, AGENT_DB_WANT_READ,
                             apr_time_now() + apr_time_from_sec(60));
    setitimer(ITIMER_REAL, &off, NULL);
    assert_true(is_ready);
    assert_int_equal(signals, 2);
    close(fds[0]);
    close(fds[1]);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    agent_db_t db = {0};

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_false(agent_db_wait(&db, AGENT_DB_WANT_READ,
                               apr_time_now() + apr_time_from_msec(5)));
    assert_false(agent_db_wait(&db, AGENT_DB_WANT_READ, apr_time_now() - 1));
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_signal_does_not_end_a_wait),
        CHECK_TEST(a_wait_ends_at_its_deadline),
    };

    return CHECK_RUN(tests);
}
