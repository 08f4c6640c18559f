/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/runner/protocol/protocol.c */
/* OBJECTS: supervisor/runner/protocol/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol/protocol_record.c */
/* OBJECTS: supervisor/runner/protocol/protocol_make.c */
/* OBJECTS: supervisor/runner/pool/graphs.c core/ */
/* The graphs that a runner reports in `ready`. */
#include "fuzz.h"

#include <string.h>

#include "../../mod_agent/core/scan.h"
#include "../../mod_agent/supervisor/runner/pool/graphs.h"

static agent_graph_table_t *make_table(apr_pool_t *pool)
{
    static const char *const names[] = {"agent", "a b", "desk/agent"};
    static const agent_pool_config_t config = {
        .graph_ids = names, .graph_count = 3, .runners = 1};
    agent_context_t *context = apr_pcalloc(pool, sizeof(*context));
    agent_graph_table_t *table = apr_pcalloc(pool, sizeof(*table));

    context->pool = pool;
    agent_graphs_init(table, context, &config);
    return table;
}

/* A report that waits is an object of limited length. */
static void check_report(const agent_buffer_t *report)
{
    agent_scan_t scan = {.code = AGENT_SCAN_OK};
    const char *text = agent_buffer_text(report);
    size_t length = agent_buffer_length(report);

    must(length == 0 || (*text == '{' && agent_scan_json(&scan, text, length)));
    must(length <= AGENT_GRAPH_REPORT_MAX + 8192);
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    agent_graph_table_t *table = make_table(pool);
    agent_graph_set_t *set = NULL;
    agent_graph_set_t *again = NULL;
    agent_line_t line;

    memset(&line, 0, sizeof(line));
    if (agent_protocol_read(&line, text, length) != NULL
        || line.type != AGENT_LINE_READY) {
        return;
    }
    if (agent_graphs_take(table, &set, &line) != NULL) {
        must(set == NULL && table->set_count == 0);
        return;
    }
    for (int i = 0; i < table->count; i++) {
        must(set->has[i]
             == (agent_buffer_length(&table->graphs[i].report) > 0));
        check_report(&table->graphs[i].report);
    }
    must(agent_graphs_take(table, &again, &line) == NULL);
    must(again == set && set->users == 2 && table->set_count == 1);
}
