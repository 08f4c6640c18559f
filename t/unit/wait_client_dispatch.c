/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: wait/client_dispatch.c */
/* OBJECTS: wait/epoll.c */
/* OBJECTS: core/allocator.c core/lock.c */
/* OBJECTS: core/child_thread.c */
/* Which requests that wait for their clients are dispatched. */
#include "check.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../mod_agent/wait/client_dispatch.h"

#define CLIENTS 5
#define MOST    2

/* Connections: [0] is the child's end, [1] the client's. */
typedef struct clients_t {
    apr_pool_t *pool;
    agent_client_dispatch_t *dispatch;
    int sockets[CLIENTS][2];
    agent_client_wait_t *waits[CLIENTS];
} clients_t;

static void open_clients(clients_t *clients)
{
    *clients = (clients_t){NULL};
    apr_pool_create(&clients->pool, NULL);
    assert_int_equal(
        agent_client_dispatch_create(&clients->dispatch, MOST, clients->pool),
        APR_SUCCESS);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
                                    clients->sockets[i]),
                         0);
        assert_int_equal(agent_client_dispatch_create_wait(
                             &clients->waits[i], clients->dispatch,
                             clients->sockets[i][0], clients->pool),
                         APR_SUCCESS);
        agent_client_dispatch_begin_wait(clients->waits[i], AGENT_CLIENT_SENDS);
    }
}

static void close_clients(clients_t *clients)
{
    for (int i = 0; i < CLIENTS; i++) {
        agent_client_dispatch_end_wait(clients->waits[i]);
        close(clients->sockets[i][0]);
        if (clients->sockets[i][1] >= 0) {
            close(clients->sockets[i][1]);
        }
    }
    apr_pool_destroy(clients->pool);
}

static bool is_dispatched(const clients_t *clients, int i)
{
    struct pollfd fd = {agent_client_dispatch_descriptor(clients->waits[i]),
                        POLLIN, 0};

    return poll(&fd, 1, 0) > 0;
}

static void wait_until_dispatched(const clients_t *clients, int i)
{
    struct pollfd fd = {agent_client_dispatch_descriptor(clients->waits[i]),
                        POLLIN, 0};

    assert_int_equal(poll(&fd, 1, -1), 1);
}

static void send_byte(const clients_t *clients, int i)
{
    assert_int_equal(write(clients->sockets[i][1], "x", 1), 1);
}

static void read_all(const clients_t *clients, int i)
{
    char bytes[16];

    assert_true(read(clients->sockets[i][0], bytes, sizeof(bytes)) > 0);
}

/* All clients have sent data, 0 first and 4 last. */
static void send_in_order(const clients_t *clients)
{
    for (int i = 0; i < MOST; i++) {
        send_byte(clients, i);
        wait_until_dispatched(clients, i);
    }
    for (int i = MOST; i < CLIENTS; i++) {
        send_byte(clients, i);
    }
}

static void bodies_whose_data_has_arrived_are_dispatched(void **state)
{
    clients_t clients;

    open_clients(&clients);
    send_byte(&clients, 3);
    wait_until_dispatched(&clients, 3);
    assert_false(is_dispatched(&clients, 0));
    read_all(&clients, 3);
    agent_client_dispatch_begin_wait(clients.waits[3], AGENT_CLIENT_SENDS);
    assert_false(is_dispatched(&clients, 3));
    send_byte(&clients, 3);
    wait_until_dispatched(&clients, 3);
    close_clients(&clients);
}

static void at_most_the_limit_are_dispatched_at_the_same_time(void **state)
{
    clients_t clients;
    int dispatched = 0;

    open_clients(&clients);
    send_in_order(&clients);
    read_all(&clients, 0);
    agent_client_dispatch_begin_wait(clients.waits[0], AGENT_CLIENT_SENDS);
    /* One of the others takes the place of 0. */
    while (dispatched == 0) {
        for (int i = MOST; i < CLIENTS; i++) {
            dispatched += is_dispatched(&clients, i);
        }
    }
    assert_int_equal(dispatched, 1);
    close_clients(&clients);
}

static void a_body_that_sends_on_waits_behind_the_others(void **state)
{
    clients_t clients;

    open_clients(&clients);
    send_in_order(&clients);
    for (int i = 0; i < MOST; i++) {
        /* Its byte stays unread: it may read again after the others. */
        agent_client_dispatch_begin_wait(clients.waits[i], AGENT_CLIENT_SENDS);
    }
    for (int i = MOST; i < CLIENTS; i++) {
        wait_until_dispatched(&clients, i);
        read_all(&clients, i);
        agent_client_dispatch_begin_wait(clients.waits[i], AGENT_CLIENT_SENDS);
    }
    for (int i = 0; i < MOST; i++) {
        wait_until_dispatched(&clients, i);
    }
    close_clients(&clients);
}

static void the_end_of_a_wait_lets_the_next_body_read(void **state)
{
    clients_t clients;

    open_clients(&clients);
    send_in_order(&clients);
    agent_client_dispatch_end_wait(clients.waits[0]);
    agent_client_dispatch_end_wait(clients.waits[0]);
    agent_client_dispatch_end_wait(clients.waits[1]);
    for (int i = MOST; i < CLIENTS; i++) {
        wait_until_dispatched(&clients, i);
        agent_client_dispatch_end_wait(clients.waits[i]);
    }
    close_clients(&clients);
}

static void a_client_that_reads_is_dispatched(void **state)
{
    clients_t clients;
    char bytes[65536] = {0};

    open_clients(&clients);
    while (send(clients.sockets[1][0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    agent_client_dispatch_begin_wait(clients.waits[1], AGENT_CLIENT_READS);
    agent_client_dispatch_begin_wait(clients.waits[2], AGENT_CLIENT_READS);
    wait_until_dispatched(&clients, 2);
    assert_false(is_dispatched(&clients, 1));
    while (recv(clients.sockets[1][1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    wait_until_dispatched(&clients, 1);
    close_clients(&clients);
}

static void a_request_that_leaves_its_client_dispatches_the_next_one(
    void **state)
{
    clients_t clients;

    open_clients(&clients);
    send_in_order(&clients);
    agent_client_dispatch_release(clients.waits[0]);
    agent_client_dispatch_release(clients.waits[0]);
    agent_client_dispatch_release(clients.waits[1]);
    for (int i = MOST; i < CLIENTS; i++) {
        wait_until_dispatched(&clients, i);
        agent_client_dispatch_release(clients.waits[i]);
    }
    close_clients(&clients);
}

static void a_client_that_has_disconnected_is_dispatched(void **state)
{
    clients_t clients;

    open_clients(&clients);
    close(clients.sockets[2][1]);
    clients.sockets[2][1] = -1;
    wait_until_dispatched(&clients, 2);
    close_clients(&clients);
}

static void a_closed_descriptor_is_not_closed_again(void **state)
{
    clients_t clients;
    int reused;

    open_clients(&clients);
    close(agent_client_dispatch_descriptor(clients.waits[0]));
    agent_client_dispatch_forget_descriptor(clients.waits[0]);
    reused = dup(clients.sockets[0][0]);
    agent_client_dispatch_end_wait(clients.waits[0]);
    assert_int_equal(close(reused), 0);
    close_clients(&clients);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(bodies_whose_data_has_arrived_are_dispatched),
        CHECK_TEST(at_most_the_limit_are_dispatched_at_the_same_time),
        CHECK_TEST(a_body_that_sends_on_waits_behind_the_others),
        CHECK_TEST(the_end_of_a_wait_lets_the_next_body_read),
        CHECK_TEST(a_client_that_reads_is_dispatched),
        CHECK_TEST(a_request_that_leaves_its_client_dispatches_the_next_one),
        CHECK_TEST(a_client_that_has_disconnected_is_dispatched),
        CHECK_TEST(a_closed_descriptor_is_not_closed_again),
    };

    return CHECK_RUN(tests);
}
