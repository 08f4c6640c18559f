/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/io/http.c runners/builtin/io/schedule.c */
/* OBJECTS: core/clock.c */
/* One transfer: its reply, a malformed header, a cancel. */
#include "check.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "runners/builtin/io/http.h"

/* Resolving this name ends when the other end of the pipe is closed. */
#define SLOW_NAME "slow.test"
static int slow_pipe[2];

typedef int resolve_t(const char *node, const char *service,
                      const struct addrinfo *hints, struct addrinfo **result);

/* Replaces the function of the C library. */
int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints,
                struct addrinfo **restrict result)
{
    resolve_t *real = (resolve_t *)dlsym(RTLD_NEXT, "getaddrinfo");
    char byte;

    if (node != NULL && strcmp(node, SLOW_NAME) == 0) {
        return read(slow_pipe[0], &byte, 1) == 0 ? EAI_NONAME : EAI_FAIL;
    }
    return real(node, service, hints, result);
}

typedef struct server_t {
    int fd;
    int port;
    pthread_t thread;
} server_t;

typedef struct result_t {
    bool is_over;
    runner_reply_t reply;
    char body[64];
} result_t;

/* Answers one request, or ends when the socket is shut down. */
static void *serve_one(void *baton)
{
    static const char reply[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n"
        "Retry-After: 3\r\nContent-Type: text/plain\r\n\r\nhello";
    server_t *server = baton;
    char request[4096];
    int fd = accept(server->fd, NULL, NULL);

    if (fd >= 0) {
        if (read(fd, request, sizeof(request)) > 0
            && write(fd, reply, sizeof(reply) - 1) < 0) {
            perror("write");
        }
        close(fd);
    }
    return NULL;
}

static void start_server(server_t *server)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);

    memset(server, 0, sizeof(*server));
    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->fd, 8), 0);
    getsockname(server->fd, (struct sockaddr *)&address, &size);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve_one, server),
                     0);
}

static void stop_server(server_t *server)
{
    shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->fd);
}

static bool take_bytes(void *baton, int status, const char *bytes,
                       size_t length)
{
    result_t *result = baton;

    assert_int_equal(status, 200);
    assert_true(length < sizeof(result->body));
    memcpy(result->body, bytes, length);
    return true;
}

static void take_end(void *baton, const runner_reply_t *reply)
{
    result_t *result = baton;

    result->is_over = true;
    result->reply = *reply;
}

static void init_request(runner_request_t *request, apr_pool_t *pool)
{
    memset(request, 0, sizeof(*request));
    request->run = apr_palloc(pool, sizeof(*request->run));
    runner_schedule_init_run(request->run);
    request->host = "server";
    request->method = "GET";
}

static void get(result_t *result, int port, apr_pool_t *pool)
{
    runner_http_t *http = runner_http_open(1, pool);
    runner_request_t request;
    const char *failure = NULL;

    memset(result, 0, sizeof(*result));
    init_request(&request, pool);
    request.url = apr_psprintf(pool, "http://127.0.0.1:%d/", port);
    request.on_bytes = take_bytes;
    request.on_end = take_end;
    request.baton = result;
    assert_non_null(runner_http_start(http, &request, &failure, pool));
    while (!result->is_over) {
        runner_http_perform(http);
        if (!result->is_over) {
            runner_http_wait(http, NULL, 0, 10000);
        }
    }
}

static void a_reply_has_status_type_and_retry_after(void **state)
{
    result_t result;
    server_t server;

    start_server(&server);
    get(&result, server.port, *state);
    stop_server(&server);
    assert_int_equal(result.reply.status, 200);
    assert_null(result.reply.failure);
    assert_string_equal(result.body, "hello");
    assert_string_equal(result.reply.retry_after, "3");
    assert_string_equal(result.reply.content_type, "text/plain");
}

static void a_cancel_does_not_wait_for_the_resolver(void **state)
{
    runner_request_t request;
    const char *failure = NULL;
    runner_transfer_t *transfer;
    runner_http_t *http;
    result_t result;

    assert_int_equal(pipe(slow_pipe), 0);
    init_request(&request, *state);
    memset(&result, 0, sizeof(result));
    http = runner_http_open(1, *state);
    request.url = "http://" SLOW_NAME "/";
    request.on_bytes = take_bytes;
    request.on_end = take_end;
    request.baton = &result;
    transfer = runner_http_start(http, &request, &failure, *state);
    assert_non_null(transfer);
    runner_http_perform(http);
    assert_false(result.is_over);
    /* Ends the test in case of an error. */
    alarm(20);
    runner_http_cancel(transfer);
    alarm(0);
    close(slow_pipe[1]);
    assert_false(result.is_over);
}

static void a_header_with_a_line_break_is_not_sent(void **state)
{
    runner_request_t request;
    const char *failure = NULL;
    runner_http_t *http;

    init_request(&request, *state);
    http = runner_http_open(1, *state);
    request.url = "http://127.0.0.1/";
    request.headers = apr_array_make(*state, 1, sizeof(const char *));
    APR_ARRAY_PUSH(request.headers, const char *) = "A: b\r\nC: d";
    assert_null(runner_http_start(http, &request, &failure, *state));
    assert_non_null(failure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_reply_has_status_type_and_retry_after),
        CHECK_TEST(a_cancel_does_not_wait_for_the_resolver),
        CHECK_TEST(a_header_with_a_line_break_is_not_sent),
    };

    return CHECK_RUN(tests);
}
