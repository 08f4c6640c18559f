/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of runners. Virtual hosts inherit those of the main server; the
 * hosts that declare built-in graphs of a deployment have the same ones, since
 * they share its runners. An application has those of its host.
 */
#ifndef AGENT_CONFIG_RUNNER_SETTINGS_H
#define AGENT_CONFIG_RUNNER_SETTINGS_H

#include <httpd.h>
#include <http_config.h>

/* -1 or NULL: unset. */
typedef struct agent_runner_settings_t {
    const char *user;
    /* The programs that execute applications; NULL: those found in PATH. */
    const char *python;
    const char *node;
    int runners;
    int slots;
    /* Bytes of one runner; 0: no limit. */
    apr_int64_t memory;
    /* Runs, and bytes, at which a runner is replaced; 0: no limit. */
    int max_runs;
    apr_int64_t recycle_memory;
    int files;
    int processes; /* 0: no limit */
    /* Limits of all runners of the pool together; 0: no limit. cpu: percent of
     * one processor. */
    apr_int64_t pool_memory;
    int pool_processes;
    int pool_cpu;
    /* Longest iteration of a runner's event loop; 0: no limit. */
    apr_interval_time_t busy_timeout;
    /* Idle time after which a runner ends; 0: never. */
    apr_interval_time_t idle_time;
    /* Longest execution of a run. */
    apr_interval_time_t run_timeout;
    /* Lifetime of store items that are put without one; 0: for ever. */
    apr_interval_time_t store_ttl;
} agent_runner_settings_t;

struct agent_server_config_t;
struct agent_graph_pool_t;

/* Returns the settings of a pool's runners, with defaults for unset values:
 * those of the host that declares its first graph. */
agent_runner_settings_t agent_runner_settings_get(
    const struct agent_server_config_t *config,
    const struct agent_graph_pool_t *key);

/* Returns an error message, in pool, when hosts of one pool have different
 * settings, or a limit of a pool has no AgentRunnerCgroup; after
 * agent_graph_assign(). */
const char *agent_runner_settings_check(
    const struct agent_server_config_t *config, apr_pool_t *pool);

/* Warns of each host with graphs whose runners would exceed their memory limit,
 * and be killed, before AgentRunnerRecycleMemory replaces them. */
void agent_runner_settings_warn(const struct agent_server_config_t *config,
                                server_rec *server);

#endif
