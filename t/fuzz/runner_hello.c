/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/ runners/builtin/message/ core/ */
/* OBJECTS: runners/builtin/model/ runners/builtin/tool/ */
/* OBJECTS: runners/builtin/runner.c runners/builtin/command.c */
/* OBJECTS: runners/builtin/base/graph.c runners/builtin/graph_read.c */
/* OBJECTS: runners/builtin/io/schedule.c runners/builtin/io/wire.c */
/* OBJECTS: runners/builtin/base/clean.c runners/builtin/base/host.c */
/* OBJECTS: runners/builtin/base/memory.c runners/builtin/base/problem.c */
/* OBJECTS: runners/builtin/base/raw.c runners/builtin/base/text.c */
/* OBJECTS: runners/builtin/base/surrogates.c runners/builtin/base/value.c */
/* OBJECTS: supervisor/runner/protocol/protocol.c */
/* OBJECTS: supervisor/runner/protocol/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol/protocol_record.c */
/* OBJECTS: supervisor/runner/pool/graphs.c */
/* OBJECTS: supervisor/runner/protocol/protocol_make.c */
/* `hello`, and a run of the graph `agent`: what the runner reports of its
 * graphs is what the supervisor accepts. */
#include "runner_serve.h"
#include "supervisor/runner/pool/graphs.h"

#define MAX_GRAPHS 16

static const char run[] = "\n" PEER_ABOUT(
    "start", "1") "\"input\":{\"messages\":\"hi\"}}\n";

/* The names in hello; -1: it is another message, or there are too many. */
static int find_names(const char **names, const char *hello, apr_pool_t *pool)
{
    agent_raw_t graphs = agent_raw_get(agent_raw_read(hello), "graphs");
    const char *at = graphs.text;
    agent_member_t member;
    int count = 0;

    if (agent_raw_kind(graphs) != AGENT_RAW_OBJECT) {
        return -1;
    }
    while (agent_raw_member_next(&member, &at)) {
        if (count == MAX_GRAPHS) {
            return -1;
        }
        names[count++] = agent_raw_member_key(&member, pool);
    }
    return count;
}

static void check_ready(const char *hello, apr_pool_t *pool)
{
    const char *names[MAX_GRAPHS];
    agent_pool_config_t config = {.graph_ids = names,
                                  .graph_count = find_names(names, hello, pool),
                                  .runners = 1};
    agent_context_t *context = apr_pcalloc(pool, sizeof(*context));
    agent_graph_table_t *table = apr_pcalloc(pool, sizeof(*table));
    agent_graph_set_t *set;
    agent_line_t line;

    if (config.graph_count >= 0) {
        context->pool = pool;
        agent_graphs_init(table, context, &config);
        memset(&line, 0, sizeof(line));
        must(agent_protocol_read(&line, peer->ready, strlen(peer->ready))
             == NULL);
        must(agent_graphs_take(table, &set, &line) == NULL);
    }
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    size_t first = strcspn(text, "\n");

    serve_after("", apr_pstrcat(pool, text, run, NULL),
                strlen(text) + sizeof(run) - 1, true, pool);
    if (peer->ready != NULL && strlen(text) == length) {
        check_ready(apr_pstrmemdup(pool, text, first), pool);
    }
}
