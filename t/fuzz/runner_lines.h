/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a built-in runner (runner_serve.h), which the supervisor must
 * accept. */
#ifndef AGENT_T_FUZZ_RUNNER_LINES_H
#define AGENT_T_FUZZ_RUNNER_LINES_H

#include "runner_peer.h"

/* A state, in one part. */
#define PEER_STATE                                                             \
    "{\"messages\":{\"$list\":{\"keep\":0,\"items\":["                         \
    "{\"type\":\"human\",\"id\":\"1\",\"content\":\"use clock {}\"},"          \
    "{\"type\":\"ai\",\"id\":\"2\",\"content\":\"\",\"tool_calls\":["          \
    "{\"id\":\"c\",\"name\":\"clock\",\"args\":{},\"type\":\"tool_call\"}]}"   \
    "]}}}"

static void take_run_line(peer_run_t *run, const agent_line_t *line)
{
    must(run != NULL && run->open > 0);
    must(!run->is_call || line->type != AGENT_LINE_EVENT);
    run->checkpoints += line->type == AGENT_LINE_CHECKPOINT;
    if (line->type == AGENT_LINE_END) {
        must(!line->has_value || (run->is_call && line->success));
        must(!run->is_call || !line->success
             || line->has_value == (run->checkpoints == 0));
        run->open--;
        run->wants = false;
    }
    else if (line->type == AGENT_LINE_WANT) {
        must(!run->wants);
        run->wants = true;
        if (peer->is_helpful || peer->has_cancelled) {
            send_go(run);
        }
    }
    else if (line->type == AGENT_LINE_REQUEST && peer->is_helpful) {
        send_about(run, "reply",
                   apr_psprintf(peer->pool,
                                ",\"id\":%d,\"ok\":true,\"cursor\":null,"
                                "\"result\":{\"values\":" PEER_STATE "}",
                                (int)line->request_id));
    }
}

static void take_line(const char *text, size_t length)
{
    agent_scan_t scan = {.code = AGENT_SCAN_OK};
    agent_lease_key_t key;
    agent_line_t line;
    const char *wrong;

    memset(&line, 0, sizeof(line));
    must(agent_scan_json(&scan, text, length));
    wrong = agent_protocol_read(&line, text, length);
    if (wrong == NULL && line.type == AGENT_LINE_READY) {
        must(peer->ready == NULL);
        peer->ready = text;
    }
    else if (read_key(&key, agent_raw_read(text))) {
        must(wrong == NULL);
        take_run_line(find_run(&key), &line);
    }
    else {
        /* The peer gave a ping or a run a number that is none. */
        must(wrong != NULL || line.type == AGENT_LINE_PONG);
    }
}

/* False if the runner has sent nothing. */
static bool receive(void)
{
    agent_buffer_t *got = &peer->received;
    bool has_any = false;
    char *newline;
    ssize_t bytes;

    while ((bytes = read(peer->in, agent_buffer_reserve(got, 65536), 65536))
           > 0) {
        agent_buffer_commit(got, (apr_size_t)bytes);
        has_any = true;
    }
    while ((newline = memchr(agent_buffer_text(got), '\n',
                             agent_buffer_length(got)))
           != NULL) {
        size_t length = (size_t)(newline - agent_buffer_text(got));

        take_line(apr_pstrmemdup(peer->pool, agent_buffer_text(got), length),
                  length);
        agent_buffer_consume(got, length + 1);
    }
    return has_any;
}

#endif
