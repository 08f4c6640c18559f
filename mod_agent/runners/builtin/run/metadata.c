/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of streamed messages and events. */
#include "metadata.h"

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"

json_object *runner_metadata_path(runner_node_t node)
{
    json_object *path = runner_value_list_text("__pregel_pull");

    json_object_array_add(path, runner_value_text(runner_node_name(node)));
    return path;
}

json_object *runner_metadata_triggers(runner_node_t node, apr_pool_t *pool)
{
    return runner_value_list_text(
        apr_pstrcat(pool, "branch:to:", runner_node_name(node), NULL));
}

json_object *runner_metadata_run(runner_run_t *run)
{
    json_object *metadata = json_object_new_object();
    json_object *given = agent_json_get(agent_json_get(run->start, "config"),
                                        "metadata");

    if (json_object_is_type(given, json_type_object)) {
        json_object_object_foreach(given, key, value)
        {
            runner_value_add(metadata, key, runner_value_share(value));
        }
    }
    runner_value_add_text(metadata, "run_id", run->run_id);
    runner_value_add_text(metadata, "thread_id", run->thread_id);
    runner_value_add_text(metadata, "graph_id", run->graph->name);
    runner_value_add_text(metadata, "assistant_id",
                          agent_json_string(run->start, "assistant_id", NULL));
    return runner_value_add_integer(metadata, "run_attempt", run->attempt);
}

json_object *runner_metadata_node(runner_run_t *run, runner_node_t node)
{
    json_object *metadata = runner_metadata_run(run);

    runner_value_add_integer(metadata, "langgraph_step", run->step + 1);
    runner_value_add_text(metadata, "langgraph_node", runner_node_name(node));
    runner_value_add(metadata, "langgraph_triggers",
                     runner_metadata_triggers(node, run->node_pool));
    runner_value_add(metadata, "langgraph_path", runner_metadata_path(node));
    return runner_value_add_text(metadata, "langgraph_checkpoint_ns",
                                 apr_pstrcat(run->node_pool,
                                             runner_node_name(node), ":",
                                             run->task_id, NULL));
}

json_object *runner_metadata_model(runner_run_t *run, runner_node_t node)
{
    const runner_model_t *model = &run->graph->model;
    json_object *metadata = runner_metadata_node(run, node);

    runner_value_add_text(metadata, "ls_provider", model->provider->name);
    runner_value_add_text(metadata, "ls_model_name",
                          model->name ? model->name : model->provider->name);
    return runner_value_add_text(metadata, "ls_model_type", "chat");
}

void runner_metadata_task_id(const runner_run_t *run, runner_node_t node,
                             char out[AGENT_UUID_SIZE])
{
    char name[2 * AGENT_UUID_SIZE];

    apr_snprintf(name, sizeof(name), "%s:%s", run->checkpoint_id,
                 runner_node_name(node));
    agent_uuid_v5(out, name);
}
