/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools: the runners of one program of a deployment. A runner knows the graphs
 * and keys of its pool only, and its slots are for runs of these graphs, so
 * that no deployment sees another one's keys or waits for its runs.
 */
#ifndef AGENT_SUPERVISOR_RUNNER_POOL_H
#define AGENT_SUPERVISOR_RUNNER_POOL_H

#include "../../base/ring.h"
#include "graphs.h"

/* Failed starts in a row; when the next one may begin. */
typedef struct agent_runner_pause_t {
    int failures;
    apr_time_t start_at;
} agent_runner_pause_t;

/* The runs that a claim asks for (statement/claim.h). */
typedef struct agent_pool_claim_t {
    /* The set of graphs of the statement in flight; NULL: none. */
    agent_graph_set_t *set;
    /* The set of the last statement: sets take turns. */
    int last_set;
    /* Runs of each kind, and how many of them it got. */
    int ordinary;
    int quarantined;
    int got_ordinary;
    int got_quarantined;
} agent_pool_claim_t;

APR_RING_HEAD(agent_runner_ring_t, agent_runner_t);
typedef struct agent_runner_ring_t agent_runner_ring_t;

/* The pools that an iteration of the loop visits. */
APR_RING_HEAD(agent_pool_ring_t, agent_runner_pool_t);
typedef struct agent_pool_lists_t {
    /* A claim is due for one of the sets of graphs. */
    struct agent_pool_ring_t due;
    /* Runners may be missing. */
    struct agent_pool_ring_t lacking;
    /* Reports about graphs are not stored yet. */
    struct agent_pool_ring_t reporting;
} agent_pool_lists_t;

/* After this many failed starts in a row the runs of the pool end in error,
 * until a runner is ready. */
#define AGENT_POOL_MAX_STARTS 5

struct agent_runner_pool_t {
    agent_pool_lists_t *lists;
    /* In these and in agent_claim_t.asked, or not. */
    APR_RING_ENTRY(agent_runner_pool_t) due_link;
    APR_RING_ENTRY(agent_runner_pool_t) lacking_link;
    APR_RING_ENTRY(agent_runner_pool_t) reporting_link;
    APR_RING_ENTRY(agent_runner_pool_t) asked_link;
    const agent_pool_config_t *config;
    /* Its index in the configuration, by which the spawner knows it. */
    int number;
    agent_graph_table_t graphs;
    /* Its runners, by their pool_link: runner.h links and frees them. */
    agent_runner_ring_t runners;
    /* Separate: a run that kills its runner at once delays no others. */
    agent_runner_pause_t ordinary;
    agent_runner_pause_t quarantined;
    agent_report_t report; /* of lines about this pool */
    /* Runners in a row that have ended before they were ready and before they
     * imported a graph, and how the last one did. */
    int failed_starts;
    char start_failure[64];
    /* While none starts: the graphs that no other worker executes either. Their
     * runs are claimed, and end in error. NULL: there are none. */
    agent_graph_set_t *failing_set;
    agent_pool_claim_t claim;
    /* Of ../idle.h: when its last run ended, or it was made. */
    apr_time_t idle_since;
    /* The graphs that its runners had reported before they ended for lack of
     * runs; NULL while it has runners. */
    agent_graph_set_t *idle_set;
};

/* Initializes a pool that is in none of the lists. */
void agent_pool_init(agent_runner_pool_t *pool, agent_pool_lists_t *lists);

/* Makes the lists, and the pools of context->config, in context->pool; *count:
 * how many. Runners of all are missing. */
agent_runner_pool_t *agent_pool_make_all(int *count, agent_pool_lists_t *lists,
                                         agent_context_t *context);

/* Sets whether a claim is due for the set of graphs. */
void agent_pool_set_due(agent_runner_pool_t *pool, agent_graph_set_t *set,
                        bool is_due);

/* Returns the id of the account of its deployment, borrowed from the
 * configuration. */
const char *agent_pool_account(const agent_runner_pool_t *pool);

/* Makes claims due for all sets of graphs that runners of the pool have. */
void agent_pool_request_claim(agent_runner_pool_t *pool);

/* Makes claims due for all pools of a deployment. deployment_id: text after the
 * id is ignored; shorter than an id: all pools. */
void agent_pools_claim_for(agent_runner_pool_t *pools, int count,
                           const char *deployment_id);

/* Makes claims due after a run of the deployment has ended: for all pools of an
 * account with a limit, which may execute one more; else, if the next run of a
 * thread is ready (has_next), for those of the deployment. */
void agent_pools_claim_after(agent_runner_pool_t *pools, int count,
                             const char *deployment_id, bool has_next);

/* Lists the pool as one whose runners may be missing. */
static inline void agent_pool_miss_runner(agent_runner_pool_t *pool)
{
    AGENT_RING_ENTER(&pool->lists->lacking, pool, agent_runner_pool_t,
                     lacking_link);
}

/* Lists the pool if reports of its runners are not stored. */
void agent_pool_note_reports(agent_runner_pool_t *pool);

/* Counts a runner that could not be started or ended too soon: the next one of
 * its kind starts after 0.1 s, doubled to 5 s. A success ends that.
 * max_shared: 0 for ordinary runners. */
void agent_pool_count_failure(agent_runner_pool_t *pool,
                              agent_context_t *context, int max_shared);
void agent_pool_count_success(agent_runner_pool_t *pool, int max_shared);

/* Counts a runner that ended before it was ready and before it imported a
 * graph; how: for the log. Ends the count, when a runner is ready or has
 * imported a graph. */
void agent_pool_count_failed_start(agent_runner_pool_t *pool, const char *how);
void agent_pool_reset_failed_starts(agent_runner_pool_t *pool);

/* Whether no runner of the pool starts. */
static inline bool agent_pool_is_failing(const agent_runner_pool_t *pool)
{
    return pool->failed_starts >= AGENT_POOL_MAX_STARTS;
}

/* Whether the pool has no runners because it had no runs (../idle.h). */
static inline bool agent_pool_is_idle(const agent_runner_pool_t *pool)
{
    return pool->idle_set != NULL;
}

/* Lets the runners of an idle pool be started. */
void agent_pool_wake(agent_runner_pool_t *pool, apr_time_t now);

#endif
