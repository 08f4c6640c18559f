/* SPDX-License-Identifier: Apache-2.0 */
/* Assistants, and their graphs as runners reported them. *body and
 * errors: as in run.h. */
#ifndef AGENT_MODEL_ASSISTANT_H
#define AGENT_MODEL_ASSISTANT_H

#include "../db/pool.h"
#include "page.h"
#include "ref.h"

/* Returns the record. assistant_id: a UUID in lower case. Error:
 * ASSISTANT_NOT_FOUND. */
apr_status_t agent_assistant_get(const char **body, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *assistant_id, agent_error_t **err,
                                 apr_pool_t *pool);

/* The depth that stands for all levels. */
#define AGENT_ASSISTANT_ANY_DEPTH (-1)

/* The request for a description of an assistant's graph. All borrowed. */
typedef struct agent_assistant_describe_t {
    const char *assistant_id;
    /* schemas, graph or subgraphs (`describe` in runners/PROTOCOL.md). */
    const char *what;
    /* For graph: the levels of subgraphs that are drawn. */
    int depth;
    /* For subgraphs: the namespace of one; NULL: all of the graph. */
    const char *namespace;
    /* For subgraphs: includes subgraphs of subgraphs. */
    bool recurse;
    /* As in state.h. */
    apr_interval_time_t timeout;
} agent_assistant_describe_t;

/* Describes the graph of an assistant. If *body is NULL, a call computes the
 * response: ref->run_id, or an earlier one for an equal request. The call's id
 * is also the id of its thread; *changed: as in run.h, that id twice. Errors:
 * ASSISTANT_NOT_FOUND, GRAPH_NOT_FOUND, those of agent_json_scan_request() for
 * the namespace. */
apr_status_t agent_assistant_describe(
    const char **body, const char **changed, agent_db_pool_t *db,
    const agent_run_ref_t *ref, const agent_assistant_describe_t *describe,
    agent_error_t **err, apr_pool_t *pool);

/* A search of assistants, or a list of versions. All borrowed. */
typedef struct agent_assistant_query_t {
    const char *deployment_id;
    /* The assistant whose versions are listed. */
    const char *assistant_id;
    /* For a search: as in agent_assistant_write_t. */
    const char *const *known_graph_ids;
    /* The body as sent, checked by agent_schema_assistants(). */
    const char *request;
    /* See page.h. */
    const char *max_bytes;
} agent_assistant_query_t;

/* Lists assistants: up to the limit of the request, or as many as fit into
 * about 16 MB, but at least one. Counts all of them. System assistants of
 * graphs that no server executes are left out. */
apr_status_t agent_assistant_search(agent_page_t *page, agent_db_pool_t *db,
                                    const agent_assistant_query_t *query,
                                    agent_error_t **err, apr_pool_t *pool);

/* Counts the assistants that a search with the same request would find. *body:
 * the number. */
apr_status_t agent_assistant_count(const char **body, agent_db_pool_t *db,
                                   const agent_assistant_query_t *query,
                                   agent_error_t **err, apr_pool_t *pool);

/* The assistant that agent_assistant_create() and agent_assistant_update()
 * write. All borrowed. */
typedef struct agent_assistant_write_t {
    const char *deployment_id;
    const char *assistant_id;
    /* The graphs that this server executes, NULL-terminated: they may not be
     * reported yet. */
    const char *const *known_graph_ids;
    /* The body as sent, checked by agent_schema_new_assistant() or
     * agent_schema_assistant(). */
    const char *request;
} agent_assistant_write_t;

/* Creates an assistant. Errors: ASSISTANT_EXISTS (unless if_exists of the
 * request is do_nothing), GRAPH_NOT_FOUND, INVALID, TOO_MANY_ASSISTANTS. */
apr_status_t agent_assistant_create(const char **body, agent_db_pool_t *db,
                                    const agent_assistant_write_t *write,
                                    agent_error_t **err, apr_pool_t *pool);

/* Makes a new version of an assistant. Errors: ASSISTANT_NOT_FOUND,
 * ASSISTANT_IS_SYSTEM, GRAPH_NOT_FOUND, INVALID. */
apr_status_t agent_assistant_update(const char **body, agent_db_pool_t *db,
                                    const agent_assistant_write_t *write,
                                    agent_error_t **err, apr_pool_t *pool);

/*
 * Deletes an assistant; with_threads: after the threads whose last run it was.
 * *before: NULL at the first call. APR_EAGAIN: threads are left, call again
 * with the *before that the first call set, in pool. *changed: threads and runs
 * that ended, in both cases. Errors: ASSISTANT_NOT_FOUND, ASSISTANT_IS_SYSTEM.
 */
apr_status_t agent_assistant_delete(const char **before, const char **changed,
                                    agent_db_pool_t *db,
                                    const agent_run_ref_t *ref,
                                    const char *assistant_id, bool with_threads,
                                    agent_error_t **err, apr_pool_t *pool);

/* Lists the versions of an assistant, the newest first; bounds: as in
 * agent_assistant_search(). Error: ASSISTANT_NOT_FOUND. */
apr_status_t agent_assistant_list_versions(agent_page_t *page,
                                           agent_db_pool_t *db,
                                           const agent_assistant_query_t *query,
                                           agent_error_t **err,
                                           apr_pool_t *pool);

/* Makes a version the current one. Errors: ASSISTANT_NOT_FOUND,
 * VERSION_NOT_FOUND. */
apr_status_t agent_assistant_set_version(const char **body, agent_db_pool_t *db,
                                         const agent_run_ref_t *ref,
                                         const char *assistant_id, int version,
                                         agent_error_t **err, apr_pool_t *pool);

#endif
