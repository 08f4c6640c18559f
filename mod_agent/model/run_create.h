/* SPDX-License-Identifier: Apache-2.0 */
/* Creates runs. *body, *changed and errors: as in run.h. */
#ifndef AGENT_MODEL_RUN_CREATE_H
#define AGENT_MODEL_RUN_CREATE_H

#include "../db/pool.h"
#include "ref.h"

/* A run to create. All texts are borrowed. */
typedef struct agent_run_creation_t {
    agent_run_ref_t ref;
    const char *assistant_id;
    /* The graph whose system assistant was requested; NULL: an assistant was
     * requested by its id. */
    const char *graph_id;
    /* NULL-terminated names of the graphs of its deployment that this server
     * executes. */
    const char *const *known_graph_ids;
    /* One of agent_word_strategies. */
    const char *strategy;
    const char *user_id;
    /* NULL: none; request_hash is NULL too. */
    const char *idempotency_key;
    const char *request_hash;
    /* AgentFeedbackURL, with {run_id} and {key}; NULL: none. */
    const char *feedback_url;
    /* How long a thread that it creates is kept without activity, an interval
     * of PostgreSQL; NULL: for ever. */
    const char *thread_ttl;
    /* An object with headers of the request and its authenticated user, for
     * config.configurable; NULL: none. */
    const char *headers;
    /* The body as sent. */
    const char *request;
} agent_run_creation_t;

/* Creates a run on the thread creation->ref.thread_id. APR_EAGAIN: some of the
 * earlier runs that its strategy ends were ended (*changed), and more are left:
 * call again with before = *body, the text of a bigint; NULL in the first call.
 * It decreases with each call, so that runs which other requests create between
 * the calls are not ended. Errors: THREAD_NOT_FOUND, THREAD_BUSY,
 * ASSISTANT_NOT_FOUND, CHECKPOINT_NOT_FOUND, IDEMPOTENCY. */
apr_status_t agent_run_create(const char **body, const char **changed,
                              agent_db_pool_t *db,
                              const agent_run_creation_t *creation,
                              const char *before, agent_error_t **err,
                              apr_pool_t *pool);

/* Creates a run on a new thread with the id creation->ref.thread_id. *body: as
 * agent_run_create() returns it; strategy is not read. Errors:
 * ASSISTANT_NOT_FOUND, IDEMPOTENCY. */
apr_status_t agent_run_create_stateless(const char **body, agent_db_pool_t *db,
                                        const agent_run_creation_t *creation,
                                        agent_error_t **err, apr_pool_t *pool);

/* Runs to create. Members as above; thread_ids to graph_ids have count elements
 * each. */
typedef struct agent_run_batch_t {
    const char *deployment_id;
    int count;
    const char *const *thread_ids;
    const char *const *run_ids;
    const char *const *assistant_ids;
    /* "": an assistant was requested by its id. */
    const char *const *graph_ids;
    const char *const *known_graph_ids;
    const char *user_id;
    const char *feedback_url;
    const char *thread_ttl;
    const char *headers;
    /* The body as sent: an array. */
    const char *request;
} agent_run_batch_t;

/* Creates all runs, each on a new thread, or none. *body: the array of their
 * records. Error: ASSISTANT_NOT_FOUND. */
apr_status_t agent_run_create_batch(const char **body, agent_db_pool_t *db,
                                    const agent_run_batch_t *batch,
                                    agent_error_t **err, apr_pool_t *pool);

#endif
