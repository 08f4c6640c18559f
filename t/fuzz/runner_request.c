/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/runner/protocol/protocol.c */
/* OBJECTS: supervisor/runner/protocol/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol/protocol_record.c */
/* OBJECTS: supervisor/runner/protocol/protocol_make.c */
/* OBJECTS: supervisor/runner/run/runner_request.c */
/* OBJECTS: supervisor/runner/run/ack.c supervisor/lease/lease.c */
/* OBJECTS: supervisor/lease/backlog.c supervisor/lease/account_map.c */
/* OBJECTS: supervisor/lease/batch_size.c core/ */
/*
 * Requests and records of a run, a line each, as a hostile runner may send
 * them. After each one the result has another part, records are committed or
 * not, and the runner reads its input or not.
 */
#include "fuzz.h"

#include <string.h>

#include "../../mod_agent/core/raw.h"
#include "../../mod_agent/core/scan.h"
#include "../../mod_agent/supervisor/runner/run/ack.h"
#include "../../mod_agent/supervisor/runner/run/runner_request.h"

#define CHECKPOINT "01890000-0000-7000-8000-00000000000c"
#define PARTS      3
/* Bytes of the replies to records. */
#define MAX_ACKS (AGENT_ACK_MAX * 200)

typedef struct side_t {
    agent_runner_table_t table;
    agent_runner_request_queue_t queue;
    agent_account_map_t accounts;
    agent_backlog_table_t backlogs;
    agent_runner_t runner;
    agent_lease_t *lease;
    int parts;
    /* Numbers of the records that wait for a reply. */
    apr_array_header_t *acks;
} side_t;

static apr_size_t long_bytes(const side_t *side)
{
    return agent_backlog_sum(&side->backlogs, AGENT_BACKLOG_DEDICATED);
}

static bool has_room(void *baton, const agent_lease_t *lease)
{
    return true;
}

static side_t *make_side(apr_pool_t *pool)
{
    side_t *side = apr_pcalloc(pool, sizeof(*side));
    agent_lease_table_t *table = apr_pcalloc(pool, sizeof(*table));
    agent_context_t *context = apr_pcalloc(pool, sizeof(*context));
    agent_lease_key_t key = {.epoch = 1};

    context->pool = pool;
    agent_lease_init(table, context);
    agent_account_map_init(&side->accounts, pool);
    agent_backlog_init(&side->backlogs, context, &side->accounts);
    agent_runner_request_init(&side->queue, &side->backlogs, pool);
    side->acks = apr_array_make(pool, AGENT_ACK_MAX, sizeof(apr_int64_t));
    APR_RING_INIT(&side->table.pending, agent_runner_t, pending_link);
    side->runner.table = &side->table;
    APR_RING_ELEM_INIT(&side->runner, pending_link);
    agent_lease_group_init(&side->runner.group, &side->runner, 0);
    agent_buffer_init(&side->runner.input, pool);
    memset(key.run_id, '1', sizeof(key.run_id));
    side->lease = agent_lease_add(table, &key, &side->runner.group);
    agent_runner_request_begin(side->lease, CHECKPOINT);
    return side;
}

/* The input is lines of JSON, which the runner reads. */
static void read_input(side_t *side)
{
    agent_buffer_t *input = &side->runner.input;

    while (agent_buffer_length(input) > 0) {
        char *text = agent_buffer_text(input);
        char *end = memchr(text, '\n', agent_buffer_length(input));
        agent_scan_t scan = {.code = AGENT_SCAN_OK};

        must(end != NULL);
        must(agent_scan_json(&scan, text, (size_t)(end - text)));
        side->runner.written += (apr_uint64_t)(end - text) + 1;
        agent_buffer_consume(input, (apr_size_t)(end - text) + 1);
    }
}

/* A part for the run that waits, as the database has it. */
static void answer(side_t *side)
{
    agent_lease_t *lease = agent_runner_request_find(&side->queue, has_room,
                                                     NULL);

    if (lease != NULL) {
        must(lease->request.is_waiting);
        if (lease->request.op == AGENT_RUNNER_REQUEST_STATE) {
            must(side->parts < PARTS);
            side->parts++;
        }
        else {
            must(lease->request.after <= lease->records.saved);
            must((lease->request.long_bytes > 0) == (long_bytes(side) > 0));
        }
        agent_runner_request_reply(&side->queue, lease, "{\"a\":{\"value\":1}}",
                                   side->parts < PARTS ? "1.1" : NULL);
        must(agent_runner_request_find(&side->queue, has_room, NULL) == NULL);
        must(long_bytes(side) == 0);
    }
}

/* The records that were sent so far are committed. */
static void commit(side_t *side)
{
    side->lease->records.saved = side->lease->records.sent;
    agent_runner_request_save(&side->queue, side->lease);
    for (int i = 0; i < side->acks->nelts; i++) {
        agent_ack_reply(side->lease, APR_ARRAY_IDX(side->acks, i, apr_int64_t));
    }
    side->acks->nelts = 0;
}

/* False: the line is a breach. */
static bool take(side_t *side, const agent_line_t *line)
{
    if (line->type == AGENT_LINE_REQUEST) {
        return agent_runner_request_take(&side->queue, side->lease, line)
            == NULL;
    }
    if (line->type == AGENT_LINE_RECORD) {
        side->lease->records.sent++;
        if (line->ack >= 0) {
            if (agent_ack_take(side->lease) != NULL) {
                return false;
            }
            APR_ARRAY_PUSH(side->acks, apr_int64_t) = line->ack;
        }
        if (line->ack % 4 != 1) {
            commit(side);
        }
    }
    return true;
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    side_t *side = make_side(pool);
    const char *end = text + length;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        /* The protocol's lines are followed by a byte that may be read. */
        char *copy = apr_pstrmemdup(
            pool, text, (size_t)((newline != NULL ? newline : end) - text));
        agent_line_t line;

        memset(&line, 0, sizeof(line));
        if (agent_protocol_read(&line, copy, strlen(copy)) == NULL
            && !take(side, &line)) {
            break;
        }
        must(agent_buffer_length(&side->runner.input) < 1000 + MAX_ACKS);
        must(side->acks->nelts <= AGENT_ACK_MAX);
        if (line.request_id % 4 != 3) {
            answer(side);
        }
        if (line.request_id % 4 != 2) {
            read_input(side);
        }
        text = newline != NULL ? newline + 1 : end;
    }
    must(side->lease->request.refused <= AGENT_RUNNER_REQUEST_MAX_REFUSED + 1);
    agent_runner_request_discard(&side->queue, side->lease);
    must(agent_runner_request_find(&side->queue, has_room, NULL) == NULL);
}
