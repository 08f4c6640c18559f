/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: wait/budget.c */
/* OBJECTS: wait/body_slot.c */
/* OBJECTS: wait/client_socket.c */
/* OBJECTS: wait/client_address.c */
/* OBJECTS: core/allocator.c core/lock.c core/child_thread.c */
/* Who is evicted when slow clients hold too much, or take too many slots. */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../mod_agent/core/lock.h"
#include "../../mod_agent/wait/body_slot.h"
#include "../../mod_agent/wait/budget.h"
#include "../../mod_agent/wait/client_address.h"

#define CLIENTS 4
/* When the tests begin. */
#define NOW 1000000

/* Connections: [0] is the child's end, [1] the client's. */
typedef struct clients_t {
    apr_pool_t *pool;
    agent_budget_t *budget;
    int sockets[CLIENTS][2];
    agent_client_socket_t *copies[CLIENTS];
    int dropped[CLIENTS];
    agent_budget_share_t *shares[CLIENTS];
} clients_t;

static void drop(void *baton)
{
    ++*(int *)baton;
}

static int signals;

/* As the end of a child of prefork, whose pools give their shares back. */
static void end_child(int number)
{
    signals++;
}

static void drop_and_end_child(void *baton)
{
    drop(baton);
    raise(SIGTERM);
    assert_int_equal(signals, 0);
}

static void open_clients(clients_t *clients)
{
    *clients = (clients_t){NULL};
    apr_pool_create(&clients->pool, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
                                    clients->sockets[i]),
                         0);
        assert_int_equal(agent_client_socket_create(&clients->copies[i],
                                                    clients->sockets[i][0],
                                                    clients->pool),
                         APR_SUCCESS);
    }
}

static void close_clients(clients_t *clients)
{
    apr_pool_destroy(clients->pool);
    for (int i = 0; i < CLIENTS; i++) {
        close(clients->sockets[i][0]);
        close(clients->sockets[i][1]);
    }
}

/* Whether the child's end reads the end of the client's input. */
static bool is_shut(const clients_t *clients, int i)
{
    struct pollfd fd = {clients->sockets[i][0], POLLIN, 0};

    return poll(&fd, 1, 0) == 1;
}

static void share_budget(clients_t *clients, apr_size_t bytes)
{
    open_clients(clients);
    assert_int_equal(
        agent_budget_create(&clients->budget, bytes, clients->pool),
        APR_SUCCESS);
    for (int i = 0; i < CLIENTS; i++) {
        const agent_budget_eviction_t eviction = {drop, &clients->dropped[i],
                                                  SHUT_RD};

        clients->shares[i] = agent_budget_share_add(clients->budget, &eviction,
                                                    clients->pool);
    }
}

static void hold(clients_t *clients, int i, apr_size_t bytes, apr_time_t at)
{
    agent_budget_share_set(clients->shares[i], bytes, at);
    agent_budget_share_wait(clients->shares[i], clients->copies[i], at);
}

static void the_largest_waiting_share_is_evicted(void **state)
{
    clients_t clients;
    apr_interval_time_t idle;

    share_budget(&clients, 200);
    /* Waits a little longer than the large one. */
    hold(&clients, 0, 1, NOW);
    hold(&clients, 1, 100, NOW + 1);
    hold(&clients, 2, 1, NOW + 1);
    assert_int_equal(clients.dropped[1], 0);
    agent_budget_share_set(clients.shares[3], 198, NOW + 2);
    assert_int_equal(clients.dropped[1], 1);
    assert_true(is_shut(&clients, 1));
    assert_false(agent_budget_share_resume(clients.shares[1]));
    assert_int_equal(agent_budget_share_lost(clients.shares[1], &idle), 100);
    assert_int_equal(idle, 1);
    assert_true(agent_budget_share_resume(clients.shares[1]));
    assert_true(agent_budget_share_resume(clients.shares[0]));
    assert_true(agent_budget_share_resume(clients.shares[2]));
    assert_int_equal(
        clients.dropped[0] + clients.dropped[2] + clients.dropped[3], 0);
    close_clients(&clients);
}

static void the_share_without_progress_for_longest_is_evicted(void **state)
{
    clients_t clients;

    share_budget(&clients, 100);
    hold(&clients, 0, 50, NOW);
    hold(&clients, 1, 50, NOW);
    assert_true(agent_budget_share_resume(clients.shares[0]));
    agent_budget_share_progress(clients.shares[0], NOW + 1);
    agent_budget_share_wait(clients.shares[0], clients.copies[0], NOW + 1);
    agent_budget_share_set(clients.shares[2], 10, NOW + 1);
    assert_int_equal(clients.dropped[0], 0);
    assert_int_equal(clients.dropped[1], 1);
    close_clients(&clients);
}

static void a_share_weighs_its_bytes_after_the_clock_was_set_back(void **state)
{
    clients_t clients;

    share_budget(&clients, 100);
    hold(&clients, 0, 60, NOW);
    hold(&clients, 1, 40, 0);
    agent_budget_share_set(clients.shares[2], 10, 0);
    assert_int_equal(clients.dropped[0], 1);
    assert_int_equal(clients.dropped[1], 0);
    close_clients(&clients);
}

static void shares_in_use_are_never_evicted(void **state)
{
    clients_t clients;

    share_budget(&clients, 100);
    agent_budget_share_set(clients.shares[0], 90, NOW);
    assert_int_equal(agent_budget_room(clients.budget), 10);
    agent_budget_share_set(clients.shares[1], 90, NOW);
    assert_int_equal(agent_budget_room(clients.budget), 0);
    assert_int_equal(clients.dropped[0] + clients.dropped[1], 0);
    /* The first that waits is too much beside the other. */
    agent_budget_share_wait(clients.shares[0], clients.copies[0], NOW);
    assert_int_equal(clients.dropped[0], 1);
    agent_budget_share_wait(clients.shares[1], clients.copies[1], NOW);
    assert_int_equal(clients.dropped[1], 0);
    assert_true(agent_budget_share_resume(clients.shares[1]));
    close_clients(&clients);
}

static void the_address_with_most_slots_loses_one(void **state)
{
    clients_t clients;
    agent_body_slots_t *slots;
    agent_body_slot_t *taken[CLIENTS];
    /* The first is another client's, and waits longest. */
    const apr_uint64_t addresses[CLIENTS] = {2, 1, 1, 1};

    open_clients(&clients);
    assert_int_equal(agent_body_slots_create(&slots, 3, clients.pool),
                     APR_SUCCESS);
    for (int i = 0; i < 3; i++) {
        taken[i] = agent_body_slot_take(slots, "shop", addresses[i],
                                        clients.copies[i], clients.pool);
    }
    agent_body_slot_progress(taken[1]);
    taken[3] = agent_body_slot_take(slots, "shop", addresses[3],
                                    clients.copies[3], clients.pool);
    assert_true(is_shut(&clients, 2));
    assert_false(agent_body_slot_return(taken[2]));
    assert_true(agent_body_slot_return(taken[0]));
    assert_true(agent_body_slot_return(taken[1]));
    assert_true(agent_body_slot_return(taken[3]));
    assert_false(is_shut(&clients, 0) || is_shut(&clients, 1));
    close_clients(&clients);
}

static void an_address_takes_no_slot_of_an_address_with_fewer(void **state)
{
    clients_t clients;
    agent_body_slots_t *slots;
    agent_body_slot_t *taken[CLIENTS];
    const apr_uint64_t addresses[CLIENTS] = {2, 1, 1, 3};

    open_clients(&clients);
    assert_int_equal(agent_body_slots_create(&slots, 2, clients.pool),
                     APR_SUCCESS);
    for (int i = 0; i < CLIENTS; i++) {
        taken[i] = agent_body_slot_take(slots, "shop", addresses[i],
                                        clients.copies[i], clients.pool);
        /* With one slot each, a second one costs its own address. */
        assert_int_equal(is_shut(&clients, 1), i >= 2);
        assert_int_equal(is_shut(&clients, 0), i >= 3);
    }
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(agent_body_slot_return(taken[i]), i >= 2);
    }
    close_clients(&clients);
}

static void a_returned_slot_leaves_the_share_its_socket(void **state)
{
    clients_t clients;
    agent_body_slots_t *slots;

    share_budget(&clients, 100);
    assert_int_equal(agent_body_slots_create(&slots, 1, clients.pool),
                     APR_SUCCESS);
    hold(&clients, 0, 50, NOW);
    assert_true(agent_body_slot_return(agent_body_slot_take(
        slots, "shop", 1, clients.copies[0], clients.pool)));
    agent_budget_share_set(clients.shares[1], 60, NOW);
    assert_int_equal(clients.dropped[0], 1);
    assert_true(is_shut(&clients, 0));
    assert_false(agent_budget_share_resume(clients.shares[0]));
    close_clients(&clients);
}

static void a_cut_does_not_affect_another_socket_with_the_same_descriptor(
    void **state)
{
    clients_t clients;
    int number;

    share_budget(&clients, 100);
    hold(&clients, 0, 50, NOW);
    number = clients.sockets[0][0];
    close(number);
    assert_int_equal(dup2(clients.sockets[1][0], number), number);
    agent_budget_share_set(clients.shares[2], 60, NOW);
    assert_int_equal(clients.dropped[0], 1);
    assert_false(is_shut(&clients, 0) || is_shut(&clients, 1));
    assert_false(agent_budget_share_resume(clients.shares[0]));
    close_clients(&clients);
}

static void a_share_without_client_socket_is_dropped(void **state)
{
    clients_t clients;
    agent_client_socket_t *client;

    share_budget(&clients, 100);
    assert_int_not_equal(agent_client_socket_create(&client, -1, clients.pool),
                         APR_SUCCESS);
    assert_null(client);
    agent_budget_share_set(clients.shares[0], 60, NOW);
    agent_budget_share_wait(clients.shares[0], client, NOW);
    agent_budget_share_set(clients.shares[1], 60, NOW);
    assert_int_equal(clients.dropped[0], 1);
    assert_false(agent_budget_share_resume(clients.shares[0]));
    close_clients(&clients);
}

static void the_deployment_with_most_slots_loses_one(void **state)
{
    clients_t clients;
    agent_body_slots_t *slots;
    agent_body_slot_t *taken[CLIENTS];
    /* The first is that of the other deployment, and waits longest. */
    const char *const deployments[CLIENTS] = {"desk", "shop", "shop", "shop"};

    open_clients(&clients);
    assert_int_equal(agent_body_slots_create(&slots, 2, clients.pool),
                     APR_SUCCESS);
    for (int i = 0; i < CLIENTS; i++) {
        taken[i] = agent_body_slot_take(slots, deployments[i], (apr_uint64_t)i,
                                        clients.copies[i], clients.pool);
    }
    assert_false(is_shut(&clients, 0));
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(agent_body_slot_return(taken[i]), i == 0 || i == 3);
    }
    close_clients(&clients);
}

static void the_deployment_that_holds_most_is_evicted(void **state)
{
    clients_t clients;

    share_budget(&clients, 100);
    for (int i = 0; i < CLIENTS; i++) {
        agent_budget_share_set_owner(clients.shares[i],
                                     i == 0 ? "desk" : "shop");
    }
    /* The heaviest alone, and for longest. */
    hold(&clients, 0, 45, NOW - 1);
    hold(&clients, 1, 30, NOW);
    hold(&clients, 2, 20, NOW);
    agent_budget_share_set(clients.shares[3], 10, NOW + 1);
    assert_int_equal(clients.dropped[0], 0);
    assert_int_equal(clients.dropped[1], 1);
    assert_int_equal(clients.dropped[2], 0);
    close_clients(&clients);
}

static void a_deployment_keeps_its_part_beside_shares_in_use(void **state)
{
    clients_t clients;

    share_budget(&clients, 100);
    for (int i = 0; i < CLIENTS; i++) {
        agent_budget_share_set_owner(clients.shares[i],
                                     i == 0 ? "desk" : "shop");
    }
    hold(&clients, 0, 25, NOW);
    agent_budget_share_set(clients.shares[1], 90, NOW + 1);
    assert_int_equal(clients.dropped[0], 0);
    assert_true(agent_budget_share_resume(clients.shares[0]));
    agent_budget_share_set(clients.shares[0], 26, NOW + 1);
    agent_budget_share_wait(clients.shares[0], clients.copies[0], NOW + 1);
    assert_int_equal(clients.dropped[0], 1);
    close_clients(&clients);
}

static void a_share_counts_for_its_last_owner(void **state)
{
    clients_t clients;

    share_budget(&clients, 100);
    agent_budget_share_set_owner(clients.shares[0], "shop");
    agent_budget_share_set_owner(clients.shares[1], "desk");
    agent_budget_share_set(clients.shares[0], 60, NOW);
    agent_budget_share_set_owner(clients.shares[0], "desk");
    agent_budget_share_set_owner(clients.shares[1], "shop");
    agent_budget_share_wait(clients.shares[0], clients.copies[0], NOW);
    hold(&clients, 1, 50, NOW - 1);
    assert_int_equal(clients.dropped[0], 1);
    assert_int_equal(clients.dropped[1], 0);
    close_clients(&clients);
}

static void a_signal_that_ends_a_child_of_prefork_waits_for_a_cut(void **state)
{
    clients_t clients;
    agent_budget_eviction_t eviction = {drop_and_end_child, &clients.dropped[0],
                                        SHUT_RD};

    agent_lock_start(true);
    signals = 0;
    signal(SIGTERM, end_child);
    share_budget(&clients, 100);
    clients.shares[0] = agent_budget_share_add(clients.budget, &eviction,
                                               clients.pool);
    hold(&clients, 0, 60, NOW);
    agent_budget_share_set(clients.shares[1], 60, NOW);
    assert_int_equal(clients.dropped[0], 1);
    assert_int_equal(signals, 1);
    close_clients(&clients);
    agent_lock_start(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_largest_waiting_share_is_evicted),
        CHECK_TEST(the_share_without_progress_for_longest_is_evicted),
        CHECK_TEST(a_share_weighs_its_bytes_after_the_clock_was_set_back),
        CHECK_TEST(shares_in_use_are_never_evicted),
        CHECK_TEST(a_returned_slot_leaves_the_share_its_socket),
        CHECK_TEST(
            a_cut_does_not_affect_another_socket_with_the_same_descriptor),
        CHECK_TEST(a_share_without_client_socket_is_dropped),
        CHECK_TEST(the_address_with_most_slots_loses_one),
        CHECK_TEST(an_address_takes_no_slot_of_an_address_with_fewer),
        CHECK_TEST(the_deployment_with_most_slots_loses_one),
        CHECK_TEST(the_deployment_that_holds_most_is_evicted),
        CHECK_TEST(a_deployment_keeps_its_part_beside_shares_in_use),
        CHECK_TEST(a_share_counts_for_its_last_owner),
        CHECK_TEST(a_signal_that_ends_a_child_of_prefork_waits_for_a_cut),
    };

    return CHECK_RUN(tests);
}
