/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/wake.c */
/* Datagrams to the supervisor: no, one or many ids. */
#include "check.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../../mod_agent/core/wake.h"

#define DEPLOYMENT "00000000-0000-0000-0000-000000000001"
#define ID         "01890000-0000-7000-8000-000000000000"

static int ends[2];

static int open_socket(void **state)
{
    return check_make_pool(state) || socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
}

static int close_socket(void **state)
{
    close(ends[0]);
    close(ends[1]);
    return check_drop_pool(state);
}

/* The next datagram as text in pool; NULL: none. */
static const char *receive(apr_pool_t *pool)
{
    char text[AGENT_WAKE_BYTES + 1];
    ssize_t length = recv(ends[0], text, sizeof(text), MSG_DONTWAIT);

    return length >= 0 ? apr_pstrndup(pool, text, (apr_size_t)length) : NULL;
}

static void each_wake_up_is_one_datagram(void **state)
{
    agent_wake_ready(ends[1], DEPLOYMENT, NULL);
    agent_wake_cancel(ends[1], DEPLOYMENT, ID);
    assert_string_equal(receive(*state), "R" DEPLOYMENT);
    assert_string_equal(receive(*state), "C");
    assert_string_equal(receive(*state), "N" DEPLOYMENT " " ID);
    assert_null(receive(*state));
}

static void without_ids_nothing_is_sent(void **state)
{
    agent_wake_changed(ends[1], DEPLOYMENT, NULL);
    agent_wake_changed(ends[1], DEPLOYMENT, "");
    agent_wake_changed(-1, DEPLOYMENT, ID);
    assert_null(receive(*state));
}

static void many_ids_are_split_into_datagrams_of_whole_ids(void **state)
{
    const char *changed = ID;

    /* Bounded: 250 ids. */
    for (int i = 1; i < 250; i++) {
        changed = apr_pstrcat(*state, changed, " " ID, NULL);
    }
    agent_wake_changed(ends[1], DEPLOYMENT, changed);
    for (int left = 250; left > 0; left -= 100) {
        const char *text = receive(*state);
        size_t count = left > 100 ? 100 : (size_t)left;

        if (text == NULL) {
            fail();
            return;
        }
        assert_memory_equal(text, "N" DEPLOYMENT " " ID, 2 + 2 * strlen(ID));
        assert_int_equal(strlen(text),
                         1 + (1 + count) * AGENT_UUID_SIZE - (left <= 100));
    }
    assert_null(receive(*state));
}

static void a_full_socket_does_not_block(void **state)
{
    for (int i = 0; i < 10000; i++) {
        agent_wake_ready(ends[1], DEPLOYMENT, NULL);
    }
    assert_string_equal(receive(*state), "R" DEPLOYMENT);
}

/* So a reader that finds fewer has missed none. */
static void a_full_socket_holds_at_least_many(void **state)
{
    const char *changed = ID;
    int count = 0;

    for (int i = 1; i < 1000; i++) {
        changed = apr_pstrcat(*state, changed, " " ID, NULL);
    }
    for (int i = 0; i < 100; i++) {
        agent_wake_changed(ends[1], DEPLOYMENT, changed);
    }
    while (receive(*state) != NULL) {
        count++;
    }
    assert_true(count < 1000);
    assert_true(count >= AGENT_WAKE_MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_wake_up_is_one_datagram,
                                        open_socket, close_socket),
        cmocka_unit_test_setup_teardown(without_ids_nothing_is_sent,
                                        open_socket, close_socket),
        cmocka_unit_test_setup_teardown(
            many_ids_are_split_into_datagrams_of_whole_ids, open_socket,
            close_socket),
        cmocka_unit_test_setup_teardown(a_full_socket_does_not_block,
                                        open_socket, close_socket),
        cmocka_unit_test_setup_teardown(a_full_socket_holds_at_least_many,
                                        open_socket, close_socket)};

    return CHECK_RUN(tests);
}
