/* SPDX-License-Identifier: Apache-2.0 */
/* Executing the messages of the supervisor. */
#include "command.h"

#include <inttypes.h>
#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "graph_read.h"
#include "runners/builtin/base/log.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/run/load.h"
#include "runners/builtin/run/run.h"
#include "runners/builtin/run/start.h"

#define PROTOCOL_VERSION 2
/* The exit code after a breach of the protocol. */
#define EXIT_BREACH 2

void runner_command_refuse(runner_t *runner, const char *reason)
{
    runner_log_write(NULL, "the supervisor broke the protocol: %s", reason);
    runner->is_over = true;
    runner->exit_code = EXIT_BREACH;
}

static void read_graphs(runner_t *runner, json_object *given)
{
    runner->graphs = apr_hash_make(runner->pool);
    runner->problems = apr_hash_make(runner->pool);
    json_object_object_foreach(given, key, value)
    {
        runner_graph_t *graph;
        runner_problem_t *problem = NULL;

        if (runner_graph_read(&graph, key, value, &problem, runner->pool)
            == APR_SUCCESS) {
            apr_hash_set(runner->graphs, apr_pstrdup(runner->pool, key),
                         APR_HASH_KEY_STRING, graph);
        }
        else {
            runner_log_write(NULL, "graph %s cannot be served: %s", key,
                             problem->message);
            if (strcmp(agent_json_string(value, "kind", ""), "builtin") == 0) {
                apr_hash_set(runner->problems, apr_pstrdup(runner->pool, key),
                             APR_HASH_KEY_STRING, problem);
            }
        }
    }
}

/* The report about a graph that cannot be executed: {error}. */
static json_object *describe_problem(const runner_problem_t *problem)
{
    json_object *error = json_object_new_object();

    runner_value_add_text(error, "error", problem->name);
    runner_value_add_text(error, "message", problem->message);
    return runner_value_wrap("error", error);
}

static void send_ready(runner_t *runner)
{
    json_object *graphs = agent_json_own(json_object_new_object(),
                                         runner->scratch);
    apr_hash_index_t *index = apr_hash_first(runner->scratch, runner->graphs);

    for (; index != NULL; index = apr_hash_next(index)) {
        runner_graph_t *graph = apr_hash_this_val(index);

        runner_value_add(graphs, apr_hash_this_key(index),
                         runner_graph_describe(graph));
    }
    index = apr_hash_first(runner->scratch, runner->problems);
    for (; index != NULL; index = apr_hash_next(index)) {
        runner_value_add(graphs, apr_hash_this_key(index),
                         describe_problem(apr_hash_this_val(index)));
    }
    runner_wire_begin(&runner->wire, "{\"type\":\"ready\",\"graphs\":");
    runner_wire_add_json(&runner->wire, graphs);
    runner_wire_add(&runner->wire,
                    ",\"slots\":%d,\"runtime\":{\"language\":\"C\"}}",
                    runner->slots);
    runner_wire_end(&runner->wire);
}

static void take_hello(runner_t *runner, json_object *message)
{
    json_object *graphs = agent_json_get(message, "graphs");

    if (runner->graphs != NULL) {
        runner_command_refuse(runner, "a second hello");
        return;
    }
    if (agent_json_integer(message, "protocol", 0) != PROTOCOL_VERSION) {
        runner_command_refuse(runner, "hello with a protocol other than 2");
        return;
    }
    if (!json_object_is_type(graphs, json_type_object)) {
        runner_command_refuse(runner, "hello without graphs");
        return;
    }
    read_graphs(runner, graphs);
    send_ready(runner);
}

/* The graph of a start; NULL if hello did not name it. */
static const runner_graph_t *find_graph(const runner_t *runner,
                                        json_object *message)
{
    return apr_hash_get(runner->graphs,
                        agent_json_string(message, "graph_id", ""),
                        APR_HASH_KEY_STRING);
}

/* message belongs to pool, which becomes the pool of the run. */
static void take_start(runner_t *runner, json_object *message, apr_pool_t *pool)
{
    const char *reason = NULL;
    runner_run_t *run;

    if (runner_start_read(&run, message, &runner->wire, runner->http,
                          find_graph(runner, message), &reason, pool)
        != APR_SUCCESS) {
        runner_command_refuse(runner, reason);
    }
    else if (runner->is_draining && !runner->was_queued) {
        runner_command_refuse(runner, "start after drain");
    }
    else if (runner->used == runner->slots) {
        runner_command_refuse(runner, "start when all slots are in use");
    }
    else if (runner_runs_find(&runner->runs, run->run_id) != NULL) {
        runner_command_refuse(runner, "start of a run that is already running");
    }
    else {
        run->weight = runner->weight.begun;
        run->start_weight = runner->weight.line;
        run->text_size = runner->weight.text;
        run->expected_weight = runner->weight.state;
        run->pending = &runner->pending;
        run->warm = runner->warm;
        APR_RING_INSERT_TAIL(&runner->runs, run, runner_run_t, link);
        runner->used++;
        return;
    }
    apr_pool_destroy(pool);
}

/* Ends a run whose start is queued, without parsing the message: there is no
 * memory for it. Nothing of the run is saved. */
static void end_queued(runner_t *runner, runner_queue_entry_t *entry,
                       const char *status)
{
    runner_wire_begin(&runner->wire,
                      "{\"type\":\"end\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"status\":\"%s\",\"error\":null}",
                      entry->run_id, entry->epoch, status);
    runner_wire_end(&runner->wire);
    runner_queue_remove(&runner->queue, entry);
    apr_pool_destroy(entry->pool);
}

/* `cancel` or `stop`. The run may be unknown: the message may cross its end. */
static void take_cancel(runner_t *runner, json_object *message, bool is_stop)
{
    const char *run_id = agent_json_string(message, "run_id", "");
    int64_t epoch = agent_json_integer(message, "epoch", -1);
    runner_queue_entry_t *entry = runner_queue_find_run(&runner->queue, run_id,
                                                        epoch);
    runner_run_t *run = runner_runs_find(&runner->runs, run_id);

    if (run != NULL && run->epoch == epoch) {
        if (is_stop) {
            runner_run_stop(run);
        }
        else {
            runner_run_cancel(run);
        }
    }
    else if (entry != NULL) {
        end_queued(runner, entry, is_stop ? "drained" : "interrupted");
    }
}

static void take_go(runner_t *runner, json_object *message)
{
    runner_run_t *run = runner_runs_find(
        &runner->runs, agent_json_string(message, "run_id", ""));

    if (run != NULL && run->epoch == agent_json_integer(message, "epoch", -1)) {
        runner_output_grant(&run->output);
    }
}

/* The run may be unknown: a reply may cross its end. */
static void take_reply(runner_t *runner, json_object *message)
{
    runner_run_t *run = runner_runs_find(
        &runner->runs, agent_json_string(message, "run_id", ""));
    const char *wrong = NULL;

    if (run == NULL || run->epoch != agent_json_integer(message, "epoch", -1)) {
        return;
    }
    if (run->phase == RUNNER_PHASE_LOAD) {
        wrong = runner_load_take(run, message, runner->weight);
    }
    else if (agent_json_integer(message, "id", -1) == run->uncommitted) {
        /* Also those before it: the run continues. */
        run->uncommitted = 0;
        run->wake_at = 0;
    }
    if (wrong != NULL) {
        runner_command_refuse(runner, wrong);
    }
}

static void take_ping(runner_t *runner, json_object *message)
{
    runner_wire_begin(&runner->wire, "{\"type\":\"pong\",\"id\":");
    runner_wire_add_json(&runner->wire, agent_json_get(message, "id"));
    /* The loop itself answers. */
    runner_wire_add(&runner->wire, ",\"busy_ms\":0}");
    runner_wire_end(&runner->wire);
}

void runner_command_execute(runner_t *runner, json_object *message,
                            apr_pool_t *pool)
{
    const char *type = agent_json_string(message, "type", "");

    if ((strcmp(type, "start") == 0 || strcmp(type, "call") == 0)
        && runner->graphs != NULL) {
        take_start(runner, message, pool);
        return;
    }
    if (strcmp(type, "hello") == 0) {
        take_hello(runner, message);
    }
    else if (strcmp(type, "ping") == 0) {
        take_ping(runner, message);
    }
    else if (runner->graphs == NULL) {
        runner_command_refuse(runner, "a message before hello");
    }
    else if (strcmp(type, "cancel") == 0) {
        take_cancel(runner, message, false);
    }
    else if (strcmp(type, "stop") == 0) {
        take_cancel(runner, message, true);
    }
    else if (strcmp(type, "go") == 0) {
        take_go(runner, message);
    }
    else if (strcmp(type, "drain") == 0) {
        runner->is_draining = true;
    }
    else if (strcmp(type, "reply") == 0) {
        take_reply(runner, message);
    }
    else {
        runner_command_refuse(runner, "a message of an unknown type");
    }
    apr_pool_destroy(pool);
}
