/* SPDX-License-Identifier: Apache-2.0 */
/* save_graphs; see save_graphs.h. */
#include "save_graphs.h"

#include <stdlib.h>

#define INTERVAL apr_time_from_sec(1)
/* Bytes of the reports in a statement, unless the first one is longer. */
#define MAX_BYTES ((apr_size_t)4 * 1024 * 1024)

static bool is_waiting(const agent_reported_graph_t *graph)
{
    return agent_buffer_length(&graph->report) > 0;
}

/* The pool whose reports are stored next; NULL: none waits. */
static agent_runner_pool_t *find_next(const agent_save_graphs_t *save)
{
    agent_runner_pool_t *pool;

    AGENT_RING_EACH(pool, &save->runners->lists.reporting, agent_runner_pool_t,
                    reporting_link)
    {
        if (agent_graphs_have_reports(&pool->graphs)) {
            return pool;
        }
    }
    return NULL;
}

static apr_time_t due_save(void *part)
{
    const agent_save_graphs_t *save = part;

    return agent_worker_is_live(save->worker) && find_next(save) != NULL
        ? save->due_at
        : AGENT_CLOCK_NEVER;
}

static const agent_statement_t save_graphs = {
    .name = "agent_save_graphs",
    .params = 3,
    .sql = "select agent.save_graphs($1, $2, $3)"};

/* Whether the report goes into the statement. */
static bool fits(const agent_reported_graph_t *graph,
                 const agent_buffer_t *items)
{
    return agent_buffer_length(items) == 0
        || agent_buffer_length(items) + agent_buffer_length(&graph->report)
        <= MAX_BYTES;
}

static void add_report(agent_buffer_t *items, agent_reported_graph_t *graph)
{
    agent_buffer_append(items, agent_buffer_length(items) == 0 ? "[" : ",", 1);
    agent_buffer_append(items, agent_buffer_text(&graph->report),
                        agent_buffer_length(&graph->report));
    graph->is_sent = true;
}

/* A statement has reports of one pool. */
static apr_status_t send_save(void *part, agent_database_t *database,
                              agent_error_t **err)
{
    agent_save_graphs_t *save = part;
    agent_runner_pool_t *pool = find_next(save);
    agent_graph_table_t *table;
    const char *params[3];
    agent_buffer_t items;

    if (pool == NULL) {
        /* due_save() has found one. */
        abort();
    }
    table = &pool->graphs;
    save->due_at = database->context->now + INTERVAL;
    agent_buffer_init(&items, database->scratch);
    for (int i = 0; i < table->count; i++) {
        agent_reported_graph_t *graph = &table->graphs[i];

        if (is_waiting(graph) && fits(graph, &items)) {
            add_report(&items, graph);
        }
    }
    agent_buffer_append(&items, "]", 2);
    save->sent = pool;
    save->is_partial = find_next(save) != NULL;
    params[0] = table->deployment_id;
    params[1] = agent_buffer_text(&items);
    params[2] = save->worker->id;
    return agent_db_send(database->db, &save_graphs, params, err,
                         database->scratch);
}

/* Reports that came during the statement are kept; those of other pools have
 * their turn first. */
static void take_sent(agent_runner_pool_t *pool, bool is_done)
{
    for (int i = 0; i < pool->graphs.count; i++) {
        agent_reported_graph_t *graph = &pool->graphs.graphs[i];

        if (graph->is_sent && is_done) {
            agent_buffer_clear(&graph->report);
        }
        graph->is_sent = false;
    }
    AGENT_RING_LEAVE(pool, reporting_link);
    agent_pool_note_reports(pool);
}

static void receive_save(void *part, const agent_db_result_t *result)
{
    agent_save_graphs_t *save = part;

    take_sent(save->sent, true);
    if (save->is_partial) {
        save->due_at = save->worker->context->now;
    }
}

static void fail_save(void *part, agent_failure_t failure)
{
    agent_save_graphs_t *save = part;
    const agent_context_t *context = save->worker->context;
    bool is_refused = failure == AGENT_FAILURE_DATA;

    save->due_at = agent_database_retry_at(context, failure);
    take_sent(save->sent, is_refused);
    if (is_refused) {
        agent_report_write(context, AGENT_LOG_ERR, "AGT0355", 0,
                           "the database refused what a runner reported about "
                           "its graphs: schemas and drawings are not updated");
    }
}

const agent_operation_t agent_save_graphs_operation = {
    "save_graphs", due_save, send_save, receive_save, fail_save};
