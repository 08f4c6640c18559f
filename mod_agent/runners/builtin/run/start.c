/* SPDX-License-Identifier: Apache-2.0 */
/* Creating a run from a `start` message. */
#include "start.h"

#include <string.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"

typedef struct mode_word_t {
    const char *name;
    unsigned bit;
} mode_word_t;

static const mode_word_t mode_words[] = {
    {"values", RUNNER_MODE_VALUES},
    {"updates", RUNNER_MODE_UPDATES},
    {"messages", RUNNER_MODE_MESSAGES},
    {"messages-tuple", RUNNER_MODE_MESSAGES_TUPLE},
    {"tasks", RUNNER_MODE_TASKS},
    {"checkpoints", RUNNER_MODE_CHECKPOINTS},
    {"debug", RUNNER_MODE_DEBUG},
    {"custom", RUNNER_MODE_CUSTOM},
    {"events", RUNNER_MODE_EVENTS},
    {"tools", RUNNER_MODE_TOOLS},
};

static unsigned find_mode(const char *name)
{
    for (size_t i = 0; i < sizeof(mode_words) / sizeof(mode_words[0]); i++) {
        if (strcmp(mode_words[i].name, name) == 0) {
            return mode_words[i].bit;
        }
    }
    return 0;
}

static unsigned read_modes(json_object *list)
{
    unsigned modes = 0;

    for (size_t i = 0; i < runner_value_count(list); i++) {
        modes |= find_mode(runner_value_item_text(list, i));
    }
    return modes;
}

/* Returns the bits of "*" or of an array of names; __start__ is not a
 * breakpoint. */
static unsigned read_breakpoints(json_object *given)
{
    unsigned bits = 0;

    if (json_object_is_type(given, json_type_string)) {
        return (1U << RUNNER_NODE_AGENT) | (1U << RUNNER_NODE_TOOLS);
    }
    for (size_t i = 0; i < runner_value_count(given); i++) {
        runner_node_t node = runner_node_find(runner_value_item_text(given, i));

        if (node == RUNNER_NODE_AGENT || node == RUNNER_NODE_TOOLS) {
            bits |= 1U << node;
        }
    }
    return bits;
}

static int64_t read_steps(json_object *start, const runner_graph_t *graph)
{
    int64_t steps = graph != NULL ? graph->max_steps : 0;
    int64_t requested = agent_json_integer(agent_json_get(start, "config"),
                                           "recursion_limit", steps);

    return requested > 0 && requested < steps ? requested : steps;
}

/* Whether the checkpoint from which the run starts, if there is one, has an id
 * that can be that of a parent. */
static bool has_valid_checkpoint(json_object *start)
{
    json_object *id = agent_json_get(agent_json_get(start, "checkpoint"),
                                     "checkpoint_id");
    char parsed[AGENT_UUID_SIZE];

    return id == NULL
        || agent_uuid_parse(parsed,
                            json_object_is_type(id, json_type_string)
                                ? json_object_get_string(id)
                                : NULL);
}

/* Reads the id; a call of no thread has none, "". */
static bool has_valid_thread(char thread_id[AGENT_UUID_SIZE],
                             json_object *start)
{
    json_object *id = agent_json_get(start, "thread_id");

    return (id == NULL
            && strcmp(agent_json_string(start, "type", ""), "call") == 0)
        || agent_uuid_parse(thread_id,
                            agent_json_string(start, "thread_id", NULL));
}

apr_status_t runner_start_read(runner_run_t **out, json_object *start,
                               runner_wire_t *wire, runner_http_t *http,
                               const runner_graph_t *graph, const char **reason,
                               apr_pool_t *pool)
{
    runner_run_t *run = apr_pcalloc(pool, sizeof(*run));

    *out = run;
    if (!agent_uuid_parse(run->run_id, agent_json_string(start, "run_id", NULL))
        || !has_valid_thread(run->thread_id, start)) {
        *reason = "start without a run_id or thread_id that is a UUID";
        return APR_EGENERAL;
    }
    if (!json_object_is_type(agent_json_get(start, "epoch"), json_type_int)) {
        *reason = "start without an epoch";
        return APR_EGENERAL;
    }
    if (!has_valid_checkpoint(start)) {
        *reason = "start from a checkpoint whose id is not a UUID";
        return APR_EGENERAL;
    }
    APR_RING_ELEM_INIT(run, link);
    run->pool = pool;
    apr_pool_create(&run->scratch, pool);
    run->http = http;
    runner_schedule_init_run(&run->transfers);
    run->graph = graph;
    run->start = start;
    run->is_call = strcmp(agent_json_string(start, "type", ""), "call") == 0;
    run->epoch = agent_json_integer(start, "epoch", 0);
    runner_output_init(&run->output, wire, run->run_id, run->epoch, pool);
    run->attempt = agent_json_integer(start, "attempt", 1);
    run->modes = read_modes(agent_json_get(start, "stream_modes"));
    run->interrupt_before = read_breakpoints(
        agent_json_get(start, "interrupt_before"));
    run->interrupt_after = read_breakpoints(
        agent_json_get(start, "interrupt_after"));
    run->is_sync = strcmp(agent_json_string(start, "durability", ""), "sync")
        == 0;
    run->steps_left = read_steps(start, graph);
    run->step = RUNNER_STEP_NONE;
    return APR_SUCCESS;
}
