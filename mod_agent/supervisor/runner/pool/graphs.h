/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graphs of a pool: which runners execute which, and reports of runners
 * about them that are not stored yet.
 *
 * Takes AGENT_GRAPH_REPORT_MAX bytes for each graph of the configuration at
 * most, whatever runners report.
 */
#ifndef AGENT_SUPERVISOR_RUNNER_GRAPHS_H
#define AGENT_SUPERVISOR_RUNNER_GRAPHS_H

#include <stdbool.h>

#include <apr_sha1.h>

#include "../../../core/buffer.h"
#include "../../../core/raw.h"
#include "../../../core/uuid.h"
#include "../../base/context.h"
#include "../protocol/protocol.h"

/* The longest report about one graph. */
#define AGENT_GRAPH_REPORT_MAX ((apr_size_t)1024 * 1024)

/* A graph of the configuration. */
typedef struct agent_reported_graph_t {
    /* Borrowed from the configuration; its key in hello. */
    const char *name;
    /* Id of its system assistant. */
    char assistant_id[AGENT_UUID_SIZE];
    /* The last report: a hash of it, and its text, an element of save_graphs'
     * array, until it is stored. */
    unsigned char digest[APR_SHA1_DIGESTSIZE];
    agent_buffer_t report;
    /* The statement in flight has the report. */
    bool is_sent;
    /* A runner has ended while it imported the graph; none was ready since. */
    bool is_quarantined;
    /* Why a second one ended so, a constant; NULL: none did. */
    const char *failure;
    /* Until then the graph is not imported. */
    apr_time_t retry_at;
    /* It has failed, and is imported again; of one graph at most. */
    bool is_retried;
    /* For statement/claim.h: the highest ready_seq that a claim returned. */
    apr_int64_t max_ready_seq;
} agent_reported_graph_t;

/* A set of graphs that runners reported. */
typedef struct agent_graph_set_t {
    /* One for each graph of the pool, and how many are true. */
    bool *has;
    int count;
    /* Runners that reported it and have not been freed. */
    int users;
    /* For claim.h: a claim is due; when all rows are searched next. */
    bool is_due;
    apr_time_t full_scan_at;
} agent_graph_set_t;

typedef struct agent_graph_table_t {
    agent_context_t *context;
    /* Id of the deployment; "" until this worker is registered. */
    char deployment_id[AGENT_UUID_SIZE];
    agent_reported_graph_t *graphs;
    int count;
    /* Sets that runners have, or had: set_count of at most set_max, which is
     * more than the pool can have runners at once. */
    agent_graph_set_t *sets;
    int set_count;
    int set_max;
} agent_graph_table_t;

void agent_graphs_init(agent_graph_table_t *table, agent_context_t *context,
                       const agent_pool_config_t *config);

/* Returns the number of the graph `name`; -1 if there is none. */
int agent_graphs_find(const agent_graph_table_t *table, const char *name);
/* Returns the number of the graph whose name is the member's key, unescaped; -1
 * if there is none. */
int agent_graphs_find_member(const agent_graph_table_t *table,
                             const agent_member_t *member);

/*
 * Takes the graphs of a `ready` line. *set: those that the runner can execute;
 * the caller releases it with agent_graphs_release(). A report that differs
 * from the last one about its graph is kept until it is stored. Returns NULL if
 * the line is valid, else the reason, a constant; then nothing is changed.
 */
const char *agent_graphs_take(agent_graph_table_t *table,
                              agent_graph_set_t **set,
                              const agent_line_t *line);

/* Returns the set of these graphs, an element for each graph of the pool; the
 * caller releases it with agent_graphs_release(). */
agent_graph_set_t *agent_graphs_take_set(agent_graph_table_t *table,
                                         const bool *has);

/*
 * Records that a runner ended while it imported the graph. The first time the
 * graph is quarantined. If the runner knew that (is_warned: it imported one
 * graph after another), the graph has failed, and later runners are told not to
 * import it, for timing.import_pause: no event tells that the graph has
 * changed, or that the host has memory again. reason: of the end, a constant.
 * Returns whether the graph has failed now.
 */
bool agent_graphs_blame(const agent_graph_table_t *table,
                        agent_reported_graph_t *graph, bool is_warned,
                        const char *reason);
/* Returns for each graph whether it has failed, in pool; NULL: none has. */
bool *agent_graphs_copy_failed(const agent_graph_table_t *table,
                               apr_pool_t *pool);
/* Ends the quarantine and the failures of graphs: a runner is ready, and has
 * imported all but those that were left out (NULL: none). */
void agent_graphs_clear(const agent_graph_table_t *table, const bool *left_out);
/* Whether one of the graphs that were left out is no longer a failed
 * one. */
bool agent_graphs_have_recovered(const agent_graph_table_t *table,
                                 const bool *left_out);

/* Whether the pause of a graph that has failed is over. */
bool agent_graphs_are_due(const agent_graph_table_t *table);
/* Quarantines one of these graphs, unless one is retried already: the next
 * runner imports it again. */
void agent_graphs_retry(const agent_graph_table_t *table);
/* Leaves a graph that is retried out again, until agent_graphs_retry(). */
void agent_graphs_postpone(const agent_graph_table_t *table);

/* Returns the graphs that have failed with their errors, as a JSON object in
 * pool; NULL: none has, and none is quarantined. */
const char *agent_graphs_print_failed(const agent_graph_table_t *table,
                                      apr_pool_t *pool);

/* Whether a report waits to be stored that is not in the statement in flight.
 */
bool agent_graphs_have_reports(const agent_graph_table_t *table);

/* Lets later reports be stored even if they are equal to earlier ones: the
 * database may have been replaced by an older one. */
void agent_graphs_reset_reports(const agent_graph_table_t *table);

/* set may be NULL. */
void agent_graphs_release(agent_graph_set_t *set);

#endif
