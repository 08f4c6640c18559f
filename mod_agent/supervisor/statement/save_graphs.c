/* SPDX-License-Identifier: Apache-2.0 */
/* save_graphs; see save_graphs.h. */
#include "save_graphs.h"

#include <string.h>

#define INTERVAL apr_time_from_sec(1)
/* Bytes of the reports in a statement, unless the first one is longer. */
#define MAX_BYTES ((apr_size_t)4 * 1024 * 1024)

static bool is_waiting(const agent_graph_t *graph)
{
    return agent_buffer_length(&graph->report) > 0;
}

static bool has_waiting(const agent_graph_table_t *table)
{
    for (int i = 0; i < table->count; i++) {
        if (is_waiting(&table->graphs[i]) && !table->graphs[i].is_sent) {
            return true;
        }
    }
    return false;
}

/* The next pool, after that of the last statement, with a report that waits and
 * is not in the statement; if there is none, that of the last statement. */
static agent_runner_pool_t *find_next(const agent_save_graphs_t *save)
{
    const agent_runner_table_t *runners = save->runners;

    for (int i = 1; i < runners->pool_count; i++) {
        agent_runner_pool_t *pool =
            &runners->pools[(save->last_pool + i) % runners->pool_count];

        if (has_waiting(&pool->graphs)) {
            return pool;
        }
    }
    return &runners->pools[save->last_pool];
}

static apr_time_t due_save(void *part)
{
    const agent_save_graphs_t *save = part;

    return agent_worker_is_live(save->worker)
            && has_waiting(&find_next(save)->graphs)
        ? save->due_at
        : AGENT_CLOCK_NEVER;
}

static const agent_statement_t save_graphs = {
    .name = "agent_save_graphs",
    .params = 2,
    .is_repeatable = true,
    .sql = "select agent.save_graphs($1, $2)"};

/* Whether the report goes into the statement. */
static bool fits(const agent_graph_t *graph, const agent_buffer_t *items)
{
    return agent_buffer_length(items) == 0
        || agent_buffer_length(items) + agent_buffer_length(&graph->report)
        <= MAX_BYTES;
}

static void add_report(agent_buffer_t *items, agent_graph_t *graph)
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
    agent_graph_table_t *table = &pool->graphs;
    const char *params[2];
    agent_buffer_t items;

    save->due_at = database->context->now + INTERVAL;
    agent_buffer_init(&items, database->scratch);
    for (int i = 0; i < table->count; i++) {
        agent_graph_t *graph = &table->graphs[i];

        if (is_waiting(graph) && fits(graph, &items)) {
            add_report(&items, graph);
        }
    }
    agent_buffer_append(&items, "]", 2);
    save->sent = table;
    save->last_pool = pool->number;
    save->is_partial = has_waiting(&find_next(save)->graphs);
    params[0] = table->deployment_id;
    params[1] = agent_buffer_text(&items);
    return agent_db_send(database->db, &save_graphs, params, err,
                         database->scratch);
}

/* Reports that came during the statement are kept. */
static void take_sent(agent_graph_table_t *table, bool is_done)
{
    for (int i = 0; i < table->count; i++) {
        agent_graph_t *graph = &table->graphs[i];

        if (graph->is_sent && is_done) {
            agent_buffer_clear(&graph->report);
        }
        graph->is_sent = false;
    }
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
