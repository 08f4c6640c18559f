/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a pool: the runners that execute the graphs of one
 * program of a deployment. A deployment may have several pools; each of its
 * graphs is in one of them.
 */
#ifndef AGENT_SUPERVISOR_POOL_CONFIG_H
#define AGENT_SUPERVISOR_POOL_CONFIG_H

#include <stdbool.h>
#include <sys/types.h>

#include <apr_time.h>

#define AGENT_POOL_ENVIRONMENT_MAX 64
/* The most that the sum of `runners` of all pools may be. */
#define AGENT_POOLS_MAX_RUNNERS 142

/* Limits of the processes of a pool together, by its cgroup; 0: none. */
typedef struct agent_cgroup_limits_t {
    /* Bytes. */
    apr_int64_t memory;
    /* Processes and threads. */
    int processes;
    /* Percent of one processor. */
    int cpu_percent;
} agent_cgroup_limits_t;

/* Everything it points to is borrowed until agent_supervisor_main() returns. */
typedef struct agent_pool_config_t {
    /* Name of the pool in the log: DEPLOYMENT or DEPLOYMENT/APPLICATION.
     */
    const char *name;
    /* The deployment (core/deployment.h), and the names of the graphs. */
    const char *deployment;
    /* The account of the deployment has a limit of runs that execute. */
    bool has_limit;
    const char *const *graph_ids;
    int graph_count;
    /* JSON text: the `graphs` object of the protocol's hello. It has the keys
     * of this pool's models only. */
    const char *graphs;
    /* JSON text: `application` of hello; NULL: the pool has none. */
    const char *application;
    /* The program; opened before privileges are dropped, that of an application
     * with the rights of its user: if that fails, only its runners do not
     * start.
     */
    const char *program;
    /* Its arguments, from argv[0] on, ended by NULL; NULL: only a name. */
    const char *const *arguments;
    /* Its working directory, which its user can enter; NULL: / */
    const char *directory;
    /* NAME=value, ended by NULL, besides PATH, LANG and TZ: at most
     * AGENT_POOL_ENVIRONMENT_MAX; NULL: none. */
    const char *const *environment;
    /* User of the runners; (uid_t)-1: that of the supervisor. */
    uid_t uid;
    gid_t gid;
    /* Runner processes, and runs at once in each of them. */
    int runners;
    int slots;
    /* Bytes that a runner may use: its data segment and, checked each second,
     * its resident memory. 0: no limit. */
    apr_int64_t memory;
    /* Descriptors that a runner may have open, and processes that its user may
     * have; 0: as many as the supervisor. */
    int files;
    int processes;
    /* Without effect unless the supervisor has a cgroup. */
    agent_cgroup_limits_t limits;
    /* Runs, and bytes of resident memory, after which a runner is replaced;
     * 0: no limit. */
    int max_runs;
    apr_int64_t recycle_memory;
    /* A runner that reports that its event loop has been blocked for longer is
     * killed; 0: never. */
    apr_interval_time_t busy_timeout;
    /* The runners of a pool without runs end after this time; the next run
     * starts them again. 0: never. */
    apr_interval_time_t idle_time;
    /* Longest execution of a run; 0: no limit. */
    apr_interval_time_t run_timeout;
    /* Of items of the store that its runs put without one; 0: for ever. */
    apr_interval_time_t store_ttl;
} agent_pool_config_t;

#endif
