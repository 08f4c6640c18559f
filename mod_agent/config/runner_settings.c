/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of runners; see runner_settings.h. */
#include "runner_settings.h"

#include <string.h>

#include <apr_strings.h>

#include "../private.h"
#include "graph.h"
#include "location.h"
#include "unused_directive.h"

#define DEFAULT_MEMORY (APR_INT64_C(1024) * 1024 * 1024)
/* 100 concurrent runs of built-in graphs need a quarter of these. */
#define DEFAULT_FILES    4096
#define DEFAULT_BUSY_SEC 60
#define DEFAULT_RUN_SEC  3600

#define SET_DEFAULT(field, unset, value)                                       \
    settings.field = settings.field != (unset) ? settings.field : (value)

static agent_runner_settings_t get_of_host(const server_rec *host)
{
    agent_runner_settings_t settings = agent_location_host(host)->runner;

    SET_DEFAULT(user, NULL, "nobody");
    SET_DEFAULT(runners, -1, 1);
    SET_DEFAULT(slots, -1, 100);
    SET_DEFAULT(memory, -1, DEFAULT_MEMORY);
    SET_DEFAULT(max_runs, -1, 0);
    SET_DEFAULT(recycle_memory, -1, 0);
    SET_DEFAULT(files, -1, DEFAULT_FILES);
    SET_DEFAULT(processes, -1, 0);
    SET_DEFAULT(pool_memory, -1, 0);
    SET_DEFAULT(pool_processes, -1, 0);
    SET_DEFAULT(pool_cpu, -1, 0);
    SET_DEFAULT(busy_timeout, -1, apr_time_from_sec(DEFAULT_BUSY_SEC));
    SET_DEFAULT(idle_time, -1, 0);
    SET_DEFAULT(run_timeout, -1, apr_time_from_sec(DEFAULT_RUN_SEC));
    SET_DEFAULT(store_ttl, -1, 0);
    return settings;
}

/* Each pool has at least one graph, so the last one needs no comparison. */
static const agent_graph_t *find_first(const agent_server_config_t *config,
                                       const agent_graph_pool_t *key)
{
    const agent_graph_t *const *graph = (const agent_graph_t *const *)
                                            config->graphs->elts;
    const agent_graph_t *const *last = graph + config->graphs->nelts - 1;

    while (graph < last && !agent_graph_is_of(*graph, key)) {
        graph++;
    }
    return *graph;
}

agent_runner_settings_t agent_runner_settings_get(
    const agent_server_config_t *config, const agent_graph_pool_t *key)
{
    const agent_graph_t *first = find_first(config, key);

    return get_of_host(first->server);
}

static bool is_same(const agent_runner_settings_t *one,
                    const agent_runner_settings_t *other)
{
    return strcmp(one->user, other->user) == 0 && one->runners == other->runners
        && one->slots == other->slots && one->memory == other->memory
        && one->max_runs == other->max_runs
        && one->recycle_memory == other->recycle_memory
        && one->files == other->files && one->processes == other->processes
        && one->pool_memory == other->pool_memory
        && one->pool_processes == other->pool_processes
        && one->pool_cpu == other->pool_cpu
        && one->busy_timeout == other->busy_timeout
        && one->idle_time == other->idle_time
        && one->run_timeout == other->run_timeout
        && one->store_ttl == other->store_ttl;
}

/* The name of a directive that limits a pool; NULL if none does. */
static const char *find_pool_limit(const agent_runner_settings_t *settings)
{
    if (settings->pool_memory != 0) {
        return "AgentPoolMemory";
    }
    if (settings->pool_processes != 0) {
        return "AgentPoolProcesses";
    }
    return settings->pool_cpu != 0 ? "AgentPoolCPU" : NULL;
}

static const char *print_without_cgroup(const ap_directive_t *limit,
                                        const char *name,
                                        const agent_graph_t *graph,
                                        apr_pool_t *pool)
{
    return apr_psprintf(pool,
                        "%s: expected an AgentRunnerCgroup, got none for '%s' "
                        "at %s:%d (for the deployment '%s')",
                        name, limit->args, limit->filename, limit->line_num,
                        graph->deployment);
}

/* Returns an error message; NULL if the graph's pool can be limited. */
static const char *check_cgroup(const agent_server_config_t *config,
                                const agent_graph_t *graph,
                                const agent_runner_settings_t *settings,
                                apr_pool_t *pool)
{
    const char *name = find_pool_limit(settings);

    return config->cgroup == NULL && name != NULL ? print_without_cgroup(
               agent_unused_directive_find(config, graph->server, name), name,
               graph, pool)
                                                  : NULL;
}

const char *agent_runner_settings_check(const agent_server_config_t *config,
                                        apr_pool_t *pool)
{
    /* Bounded: it returns with the first message. */
    for (int i = 0; i < config->graphs->nelts; i++) {
        const agent_graph_t *graph = agent_graph_get(config, i);
        const agent_graph_pool_t key = {graph->deployment, graph->application};
        const agent_graph_t *first = find_first(config, &key);
        agent_runner_settings_t own = get_of_host(graph->server);
        agent_runner_settings_t shared = get_of_host(first->server);
        const char *problem;

        problem = check_cgroup(config, graph, &own, pool);
        if (problem != NULL) {
            return problem;
        }
        if (!is_same(&own, &shared)) {
            return apr_psprintf(
                pool,
                "<AgentGraph>: expected the same directives of runners in all "
                "hosts that declare graphs of a deployment, got others for "
                "'%s' of '%s' at %s:%d than for '%s' at %s:%d",
                graph->name, graph->deployment, graph->directive->filename,
                graph->directive->line_num, first->name,
                first->directive->filename, first->directive->line_num);
        }
    }
    return NULL;
}

/* Whether an earlier graph has the same host. */
static bool is_of_earlier_host(const agent_server_config_t *config, int number)
{
    for (int i = 0; i < number; i++) {
        if (agent_graph_get(config, i)->server
            == agent_graph_get(config, number)->server) {
            return true;
        }
    }
    return false;
}

static void warn_of_recycling(const agent_server_config_t *config,
                              const server_rec *host, server_rec *server)
{
    const ap_directive_t *recycle = agent_unused_directive_find(
        config, host, "AgentRunnerRecycleMemory");
    const ap_directive_t *memory = agent_unused_directive_find(
        config, host, "AgentRunnerMemory");

    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                 AGENT_LOGNO(0448) "AgentRunnerRecycleMemory: expected less "
                                   "than AgentRunnerMemory (%s), got '%s' at "
                                   "%s:%d: runners are killed before they are "
                                   "replaced",
                 memory != NULL ? memory->args : "1G by default", recycle->args,
                 recycle->filename, recycle->line_num);
}

void agent_runner_settings_warn(const agent_server_config_t *config,
                                server_rec *server)
{
    /* Bounded: the hosts with graphs. */
    for (int i = 0; i < config->graphs->nelts; i++) {
        const server_rec *host = agent_graph_get(config, i)->server;
        agent_runner_settings_t settings = get_of_host(host);

        if (settings.recycle_memory > 0 && settings.memory > 0
            && settings.recycle_memory >= settings.memory
            && !is_of_earlier_host(config, i)) {
            warn_of_recycling(config, host, server);
        }
    }
}
