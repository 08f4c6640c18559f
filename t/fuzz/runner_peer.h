/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's end of the pipes of a built-in runner (runner_serve.h): the
 * lines for the runner, and the runs that they start. */
#ifndef AGENT_T_FUZZ_RUNNER_PEER_H
#define AGENT_T_FUZZ_RUNNER_PEER_H

#include "fuzz.h"

#include <string.h>
#include <unistd.h>

#include "core/raw.h"
#include "core/scan.h"
#include "core/uuid.h"
#include "runner_alone.h"
#include "supervisor/runner/protocol/protocol.h"

typedef struct peer_run_t {
    agent_lease_key_t key;
    bool is_call;
    /* Starts without an end; a `want` without a `go`. */
    int open;
    bool wants;
    /* Since the start. */
    int checkpoints;
} peer_run_t;

struct runner_http_t {
    apr_pool_t *pool;
    int out;
    int in;
    /* Lines for the runner that are not sent; how much of the first one is. */
    const char *rest;
    const char *end;
    size_t sent;
    /* Answers each `request` and `want`, else only when the lines are sent. */
    bool is_helpful;
    bool has_cancelled;
    /* Of peer_run_t. */
    apr_array_header_t *runs;
    agent_buffer_t received;
    /* The line `ready`; NULL before it. */
    const char *ready;
};

/* The peer of the runner that is being served. */
static runner_http_t *peer;

static peer_run_t *find_run(const agent_lease_key_t *key)
{
    for (int i = 0; i < peer->runs->nelts; i++) {
        peer_run_t *run = &APR_ARRAY_IDX(peer->runs, i, peer_run_t);

        if (memcmp(&run->key, key, sizeof(*key)) == 0) {
            return run;
        }
    }
    return NULL;
}

static void send_bytes(const char *text, size_t length)
{
    must(write(peer->out, text, length) == (ssize_t)length);
}

/* more: further members, each after a comma. */
static void send_about(const peer_run_t *run, const char *type,
                       const char *more)
{
    const char *text = apr_psprintf(
        peer->pool, "{\"type\":\"%s\",\"run_id\":\"%.36s\",\"epoch\":%d%s}\n",
        type, run->key.run_id, run->key.epoch, more);

    send_bytes(text, strlen(text));
}

static void send_go(peer_run_t *run)
{
    run->wants = false;
    send_about(run, "go", "");
}

/* False for a key that the supervisor would not use. */
static bool read_key(agent_lease_key_t *key, agent_raw_t line)
{
    const char *id = agent_raw_string(agent_raw_get(line, "run_id"),
                                      peer->pool);
    agent_raw_t epoch = agent_raw_get(line, "epoch");
    char run_id[AGENT_UUID_SIZE];

    memset(key, 0, sizeof(*key));
    if (id == NULL || !agent_uuid_parse(run_id, id) || epoch.length == 0
        || epoch.length > 9
        || strspn(epoch.text, "0123456789") < epoch.length) {
        return false;
    }
    memcpy(key->run_id, run_id, sizeof(key->run_id));
    key->epoch = (apr_int32_t)apr_atoi64(epoch.text);
    return true;
}

static void note_start(const agent_lease_key_t *key, bool is_call)
{
    peer_run_t *run = find_run(key);

    if (run == NULL) {
        run = apr_array_push(peer->runs);
        memset(run, 0, sizeof(*run));
        run->key = *key;
    }
    run->is_call = is_call;
    run->open++;
    run->checkpoints = 0;
}

/* Keeps what a line begins. */
static void note_line(const char *text, size_t length)
{
    const char *copy = apr_pstrmemdup(peer->pool, text, length);
    agent_scan_t scan = {.code = AGENT_SCAN_OK};
    agent_lease_key_t key;
    agent_raw_t type;

    if (!agent_scan_json(&scan, copy, length)
        || !read_key(&key, agent_raw_read(copy))) {
        return;
    }
    type = agent_raw_get(agent_raw_read(copy), "type");
    if (agent_raw_equals(type, "go") && find_run(&key) != NULL) {
        find_run(&key)->wants = false;
    }
    else if (agent_raw_equals(type, "start")
             || agent_raw_equals(type, "call")) {
        note_start(&key, agent_raw_equals(type, "call"));
    }
}

#endif
