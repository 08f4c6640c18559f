/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/runner/protocol/protocol.c */
/* OBJECTS: supervisor/runner/protocol/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol/protocol_record.c */
/* OBJECTS: supervisor/lease/ supervisor/base/adaptive_limit.c */
/* OBJECTS: supervisor/statement/save_params.c */
/* OBJECTS: supervisor/statement/save_channel.c */
/* OBJECTS: supervisor/runner/protocol/channel.c db/column.c core/ */
/* Output of a run, a line each, above all records of the graph library, and the
 * parameters of agent.save_batch for those accepted. */
#include "fuzz.h"

#include <string.h>

#include <arpa/inet.h>

#include "../../mod_agent/core/raw.h"
#include "../../mod_agent/core/scan.h"
#include "../../mod_agent/supervisor/lease/batch.h"
#include "../../mod_agent/supervisor/runner/protocol/protocol.h"
#include "../../mod_agent/supervisor/statement/save_params.h"

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

static agent_lease_t *make_lease(agent_lease_table_t *table,
                                 agent_context_t *context)
{
    agent_lease_key_t key = {.epoch = 1};

    agent_lease_init(table, context);
    memset(key.run_id, '1', sizeof(key.run_id));
    return agent_lease_add(table, &key, NULL);
}

static apr_uint32_t read_word(const char **at)
{
    apr_uint32_t word;

    memcpy(&word, *at, sizeof(word));
    *at += sizeof(word);
    return ntohl(word);
}

/* Returns the number of elements of an array in binary format. */
static apr_uint32_t count_elements(const char *bytes, int length)
{
    const char *at = bytes;
    bool is_empty = read_word(&at) == 0;
    apr_uint32_t count;

    at = bytes + 12;
    count = is_empty ? 0 : read_word(&at);
    at += is_empty ? 0 : 4;
    for (apr_uint32_t i = 0; i < count; i++) {
        apr_uint32_t size = read_word(&at);

        at += size != UINT32_MAX ? size : 0;
        must(at <= bytes + length);
    }
    must(at == bytes + length);
    return count;
}

/* Columns of one set have as many elements; messages are JSON, with our members
 * last. */
static void check_params(const agent_db_params_t *params)
{
    static const int ends[] = {13, 19, 27, 35};
    int column = 1;

    for (int set = 0; set < 4; set++) {
        apr_uint32_t count = count_elements(params->values[column],
                                            params->lengths[column]);

        for (; column < ends[set]; column++) {
            must(count_elements(params->values[column], params->lengths[column])
                 == count);
        }
    }
    for (; column < AGENT_SAVE_PARAMS; column++) {
        const char *text = params->values[column];
        agent_scan_t scan = {.code = AGENT_SCAN_OK};

        must(text == NULL || agent_scan_json(&scan, text, strlen(text))
             || scan.code == AGENT_SCAN_DUPLICATE
             || scan.code == AGENT_SCAN_TOO_DEEP);
        must(text == NULL || strstr(text, "\"e\":1}]") != NULL);
    }
}

static const agent_batch_t *batch_of(const agent_batch_queue_t *queue)
{
    return APR_RING_EMPTY(&queue->shared, agent_batch_t, link)
        ? agent_fair_queue_first(&queue->dedicated)
        : APR_RING_FIRST(&queue->shared);
}

static void check_batch(const agent_lease_table_t *leases,
                        agent_batch_queue_t *queue, apr_pool_t *pool)
{
    agent_db_params_t params;

    agent_save_params_make(&params, "1", leases, batch_of(queue), pool);
    check_params(&params);
}

static agent_item_kind_t kind_of(agent_line_type_t type)
{
    switch (type) {
    case AGENT_LINE_EVENT:
        return AGENT_ITEM_EVENT;
    case AGENT_LINE_CHECKPOINT:
        return AGENT_ITEM_CHECKPOINT;
    case AGENT_LINE_TASK:
        return AGENT_ITEM_TASK;
    case AGENT_LINE_RECORD:
        return AGENT_ITEM_RECORD;
    default:
        return AGENT_ITEM_END;
    }
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    agent_context_t *context = apr_pcalloc(pool, sizeof(*context));
    agent_batch_queue_t *queue = apr_pcalloc(pool, sizeof(*queue));
    const char *end = text + length;
    agent_lease_table_t leases;
    agent_lease_t *lease;

    context->pool = pool;
    lease = make_lease(&leases, context);
    agent_batch_init(queue, context);
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        char *copy = apr_pstrmemdup(
            pool, text, (size_t)((newline != NULL ? newline : end) - text));
        agent_line_t line;

        memset(&line, 0, sizeof(line));
        if (agent_protocol_read(&line, copy, strlen(copy)) == NULL
            && line.type >= AGENT_LINE_EVENT) {
            must(line.ack >= -1);
            if (line.type == AGENT_LINE_RECORD) {
                check_record(copy, pool);
            }
            agent_batch_add(queue, lease, kind_of(line.type), copy,
                            strlen(copy), -1);
            check_batch(&leases, queue, pool);
        }
        text = newline != NULL ? newline + 1 : end;
    }
}
