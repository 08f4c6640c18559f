/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/runner/protocol.c supervisor/runner/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol_record.c supervisor/lease/batch.c */
/* OBJECTS: supervisor/lease/lease.c core/ */
/* Records of the graph library, a line each, and the batch of those accepted.
 */
#include "fuzz.h"

#include <string.h>

#include "../../mod_agent/core/raw.h"
#include "../../mod_agent/core/scan.h"
#include "../../mod_agent/supervisor/lease/batch.h"
#include "../../mod_agent/supervisor/runner/protocol.h"

static apr_size_t length_of(agent_raw_t line, const char *name,
                            apr_pool_t *pool)
{
    return strlen(agent_raw_string(agent_raw_get(line, name), pool));
}

/* The limits that the database relies on. */
static void check_record(const char *text, apr_pool_t *pool)
{
    agent_raw_t line = agent_raw_read(text);

    if (agent_raw_equals(agent_raw_get(line, "type"), "blob")) {
        agent_raw_t value = agent_raw_get(line, "text");
        agent_raw_t base64 = agent_raw_get(line, "base64");

        must(agent_raw_kind(value) == AGENT_RAW_STRING
             || agent_raw_kind(base64) == AGENT_RAW_STRING);
        must((value.length == 0) != (base64.length == 0));
        must(length_of(line, "digest", pool) == 36);
        must(length_of(line, "value_type", pool) <= 32);
        return;
    }
    must(length_of(line, "ns", pool) <= AGENT_PROTOCOL_MAX_NS);
    must(length_of(line, "checkpoint_id", pool) == 36);
    if (agent_raw_equals(agent_raw_get(line, "type"), "put_writes")) {
        must(length_of(line, "task_id", pool) <= AGENT_PROTOCOL_MAX_TASK_ID);
        must(length_of(line, "task_path", pool) <= 1024);
    }
}

static agent_lease_t *make_lease(agent_context_t *context)
{
    agent_lease_table_t *table = apr_pcalloc(context->pool, sizeof(*table));
    agent_lease_key_t key = {.epoch = 1};

    agent_lease_init(table, context);
    memset(key.run_id, '1', sizeof(key.run_id));
    return agent_lease_add(table, &key, NULL);
}

/* The parameter of the statement is JSON, with our members last. */
static void check_batch(const agent_batch_queue_t *queue, apr_pool_t *pool)
{
    const agent_batch_t *batch = APR_RING_FIRST(&queue->waiting);
    const char *text = apr_pstrcat(pool, agent_buffer_text(&batch->text), "]",
                                   NULL);
    agent_scan_t scan = {.code = AGENT_SCAN_OK};

    must(agent_scan_json(&scan, text, strlen(text))
         || scan.code == AGENT_SCAN_DUPLICATE
         || scan.code == AGENT_SCAN_TOO_DEEP);
    must(strstr(text, "\"e\":1,\"s\":null,\"f\":false}]") != NULL);
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    agent_context_t *context = apr_pcalloc(pool, sizeof(*context));
    agent_batch_queue_t *queue = apr_pcalloc(pool, sizeof(*queue));
    const char *end = text + length;
    agent_lease_t *lease;

    context->pool = pool;
    lease = make_lease(context);
    agent_batch_init(queue, context);
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        char *copy = apr_pstrmemdup(
            pool, text, (size_t)((newline != NULL ? newline : end) - text));
        agent_line_t line;

        memset(&line, 0, sizeof(line));
        if (agent_protocol_read(&line, copy, strlen(copy)) == NULL
            && line.type == AGENT_LINE_RECORD) {
            must(line.ack >= -1);
            check_record(copy, pool);
            agent_batch_add(queue, lease, AGENT_ITEM_RECORD, copy, strlen(copy),
                            line.ack);
            check_batch(queue, pool);
        }
        text = newline != NULL ? newline + 1 : end;
    }
}
