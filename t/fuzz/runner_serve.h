/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included by the fuzzers of the built-in runner: serves it as the supervisor
 * does, over pipes. Each wait of its loop is a turn of the peer, so that
 * nothing depends on the time. Whatever the supervisor sends, it accepts all
 * lines of the runner, and a runner that exits with 0 has ended each run once.
 */
#ifndef AGENT_T_FUZZ_RUNNER_SERVE_H
#define AGENT_T_FUZZ_RUNNER_SERVE_H

#include <fcntl.h>

#include "runner_lines.h"
#include "runners/builtin/runner.h"

#define PEER_SLOTS 4

/* Of a pool with one graph. */
#define PEER_HELLO                                                             \
    "{\"type\":\"hello\",\"protocol\":2,\"graphs\":{\"agent\":{"               \
    "\"kind\":\"builtin\",\"model\":{\"provider\":\"demo\"},"                  \
    "\"max_steps\":9,\"tools\":["                                              \
    "{\"name\":\"clock\",\"kind\":\"builtin\"},"                               \
    "{\"name\":\"calculator\",\"kind\":\"builtin\"},"                          \
    "{\"name\":\"web\",\"kind\":\"http\",\"url\":\"http://a.test/\"}]}}}\n"

#define PEER_ID(digit) "01890000-0000-7000-8000-00000000000" digit

/* A message about a run, without its other members. */
#define PEER_ABOUT(type, digit)                                                \
    "{\"type\":\"" type "\",\"run_id\":\"" PEER_ID(                            \
        digit) "\",\"epoch\":1,"                                               \
               "\"thread_id\":\"" PEER_ID(digit) "\",\"graph_id\":\"agent\","

runner_http_t *runner_http_open(int runs_max, apr_pool_t *pool)
{
    return peer;
}

/* Sends half a line, or the other half. */
static void send_next(void)
{
    const char *newline = memchr(peer->rest, '\n',
                                 (size_t)(peer->end - peer->rest));
    size_t length = (size_t)(newline - peer->rest);

    if (peer->sent == 0 && length > 1) {
        peer->sent = length / 2;
        send_bytes(peer->rest, peer->sent);
        return;
    }
    note_line(peer->rest, length);
    send_bytes(peer->rest + peer->sent, length + 1 - peer->sent);
    peer->rest = newline + 1;
    peer->sent = 0;
}

static void cancel_all(void)
{
    static const char drain[] = "{\"type\":\"drain\"}\n";

    peer->has_cancelled = true;
    for (int i = 0; i < peer->runs->nelts; i++) {
        peer_run_t *run = &APR_ARRAY_IDX(peer->runs, i, peer_run_t);

        if (run->open > 0) {
            send_about(run, "cancel", "");
        }
        if (run->wants) {
            send_go(run);
        }
    }
    send_bytes(drain, sizeof(drain) - 1);
}

/* A turn of the peer. */
void runner_http_wait(runner_http_t *http, struct curl_waitfd *descriptors,
                      unsigned count, int timeout_ms)
{
    bool is_idle = !receive() && timeout_ms > 0;

    if (http->rest < http->end) {
        send_next();
    }
    else if (is_idle) {
        /* Nothing may keep the runner from its end. */
        must(!http->has_cancelled);
        cancel_all();
    }
}

/* Serves a runner with these lines; returns its exit status. */
static int serve(const char *lines, size_t length, bool is_helpful,
                 apr_pool_t *pool)
{
    int to_runner[2];
    int from_runner[2];
    int status;

    must(pipe2(to_runner, O_CLOEXEC) == 0);
    must(pipe2(from_runner, O_CLOEXEC | O_NONBLOCK) == 0);
    peer = apr_pcalloc(pool, sizeof(*peer));
    peer->pool = pool;
    peer->out = to_runner[1];
    peer->in = from_runner[0];
    peer->rest = lines;
    peer->end = lines + length;
    peer->is_helpful = is_helpful;
    peer->runs = apr_array_make(pool, 4, sizeof(peer_run_t));
    agent_buffer_init(&peer->received, pool);
    status = runner_serve(to_runner[0], from_runner[1], PEER_SLOTS, pool);
    receive();
    must(status == 0 || status == 2);
    for (int i = 0; status == 0 && i < peer->runs->nelts; i++) {
        must(APR_ARRAY_IDX(peer->runs, i, peer_run_t).open == 0);
    }
    close(to_runner[0]);
    close(to_runner[1]);
    close(from_runner[0]);
    close(from_runner[1]);
    return status;
}

/* The same for lines after others, and a newline at the end. */
static int serve_after(const char *before, const char *text, size_t length,
                       bool is_helpful, apr_pool_t *pool)
{
    agent_buffer_t lines;

    agent_buffer_init(&lines, pool);
    agent_buffer_append(&lines, before, strlen(before));
    agent_buffer_append(&lines, text, length);
    agent_buffer_append(&lines, "\n", 1);
    return serve(agent_buffer_text(&lines), agent_buffer_length(&lines),
                 is_helpful, pool);
}

#endif
