/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/store/route.c */
/* OBJECTS: ../mod_ratelimit_regional/store/node.c */
/* OBJECTS: ../mod_ratelimit_regional/store/address.c */
/* OBJECTS: ../mod_ratelimit_regional/store/tls.c */
/* OBJECTS: ../mod_ratelimit_regional/store/wire.c */
/* OBJECTS: ../mod_ratelimit_regional/store/script.c */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* The nodes of a cluster. */
#include "check.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <apr_general.h>

#include "../../mod_ratelimit_regional/store/route.h"

typedef struct case_t {
    apr_pool_t *pool;
    int listener; /* of a node that accepts connections, and never answers */
    rlr_connection_config_t config;
    rlr_route_t route;
} case_t;

static void begin(case_t *test)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(at);

    memset(test, 0, sizeof(*test));
    apr_initialize();
    apr_pool_create(&test->pool, NULL);
    test->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(test->listener, (struct sockaddr *)&at, length), 0);
    assert_int_equal(listen(test->listener, 8), 0);
    getsockname(test->listener, (struct sockaddr *)&at, &length);
    test->config.address.kind = RLR_ADDRESS_CLUSTER;
    test->config.address.count = 1;
    strcpy(test->config.address.servers[0].host, "127.0.0.1");
    test->config.address.servers[0].port = ntohs(at.sin_port);
    rlr_route_init(&test->route, &test->config, test->pool);
}

static void end(case_t *test)
{
    rlr_route_close(&test->route);
    close(test->listener);
    apr_pool_destroy(test->pool);
    apr_terminate();
}

/* Looks for the node once more, as after its pause. */
static void find(case_t *test)
{
    const char *error = NULL;

    test->route.nodes[0]->attempt_ms = 0;
    assert_null(rlr_route_find(&test->route, 0, &error));
    assert_non_null(error);
}

static bool is_readable(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};

    return poll(&wanted, 1, 0) > 0;
}

/* Reads the first command of the next connection, which is for the node. */
static int accept_command(case_t *test, const char *command)
{
    int fd = accept(test->listener, NULL, NULL);
    char text[65536];
    ssize_t size;

    while (!is_readable(fd)) {
        find(test);
    }
    size = read(fd, text, sizeof(text) - 1);
    assert_true(size > 0);
    text[size] = '\0';
    assert_non_null(strstr(text, command));
    return fd;
}

static void a_node_that_hangs_is_opened_once_it_answers(void **state)
{
    case_t test;
    int first;
    int probe;
    int again;

    begin(&test);
    find(&test);
    first = accept_command(&test, "INFO");
    find(&test);
    probe = accept_command(&test, "PING");
    for (int i = 0; i < 10; i++) {
        find(&test);
        assert_false(is_readable(test.listener));
    }
    assert_int_equal(write(probe, "+PONG\r\n", 7), 7);
    while (!is_readable(test.listener)) {
        find(&test);
    }
    again = accept_command(&test, "INFO");
    close(first);
    close(probe);
    close(again);
    end(&test);
}

static void a_node_that_fails_again_and_again_is_opened_less_often(void **state)
{
    static const uint64_t pauses_ms[] = {0,    1000,  2000,  4000,
                                         8000, 16000, 32000, 32000};
    rlr_node_t *node;
    case_t test;

    begin(&test);
    node = test.route.nodes[0];
    for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
        rlr_node_give_up(node);
        assert_int_equal(node->pause_until_ms - node->failed_ms, pauses_ms[i]);
    }
    /* In the pause it is not asked. */
    find(&test);
    assert_null(node->probe);
    node->failed_ms -= 60001;
    rlr_node_give_up(node);
    assert_int_equal(node->pause_until_ms, node->failed_ms);
    end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_node_that_hangs_is_opened_once_it_answers),
        CHECK_TEST(a_node_that_fails_again_and_again_is_opened_less_often),
    };

    return CHECK_RUN(tests);
}
