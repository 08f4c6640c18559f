/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas of request bodies. Unknown members are ignored and null is the
 * same as absent; any other mismatch is INVALID with the member's JSON pointer.
 */
#ifndef AGENT_MODEL_SCHEMA_H
#define AGENT_MODEL_SCHEMA_H

#include "../core/error.h"
#include "../core/raw.h"
#include "field.h"

/* Each function below checks a body that agent_json_scan_request() has
 * accepted, and returns its fields in pool. Takes memory for fields, not for
 * values. */

/* The body of POST /assistants/search; those of /assistants/count and
 * /assistants/{assistant_id}/versions have some of its members. */
apr_status_t agent_schema_assistants(const agent_fields_t **fields,
                                     agent_raw_t body, agent_error_t **err,
                                     apr_pool_t *pool);

/* The bodies of POST /assistants and PATCH /assistants/{assistant_id}. The
 * fields of the first are assistant_id and if_exists. */
apr_status_t agent_schema_new_assistant(const agent_fields_t **fields,
                                        agent_raw_t body, agent_error_t **err,
                                        apr_pool_t *pool);
apr_status_t agent_schema_assistant(agent_raw_t body, agent_error_t **err,
                                    apr_pool_t *pool);

/* The body of POST /assistants/{assistant_id}/latest. *version is unchanged
 * without the member; if it was 0 before, the member is required. */
apr_status_t agent_schema_version(int *version, agent_raw_t body,
                                  agent_error_t **err, apr_pool_t *pool);

/* Supersteps of a new thread, and updates of each. */
#define AGENT_SUPERSTEPS 1000

/* The body of POST /threads. */
apr_status_t agent_schema_thread(const agent_fields_t **fields,
                                 agent_raw_t body, agent_error_t **err,
                                 apr_pool_t *pool);

/* The body of PATCH /threads/{thread_id}. */
apr_status_t agent_schema_thread_update(agent_raw_t body, agent_error_t **err,
                                        apr_pool_t *pool);

/* The bodies of POST /threads/search and /threads/count. */
apr_status_t agent_schema_threads(agent_raw_t body, agent_error_t **err,
                                  apr_pool_t *pool);

/* The body of POST /threads/prune. */
apr_status_t agent_schema_prune(const agent_fields_t **fields, agent_raw_t body,
                                agent_error_t **err, apr_pool_t *pool);

/* The body of POST /threads/{thread_id}/runs. */
apr_status_t agent_schema_run(const agent_fields_t **fields, agent_raw_t body,
                              agent_error_t **err, apr_pool_t *pool);

/*
 * Checks the members of a run that only some endpoints honour. run: the fields
 * of agent_schema_run() or of one run of agent_schema_runs(). thread_id: of the
 * path, in lower case; NULL for a stateless run. is_awaited: the request waits
 * for the run.
 */
apr_status_t agent_schema_endpoint(const agent_fields_t *run,
                                   const char *thread_id, bool is_awaited,
                                   agent_error_t **err, apr_pool_t *pool);

/* The body of POST /threads/{thread_id}/state; thread_id: of the path, in lower
 * case. */
apr_status_t agent_schema_state(agent_raw_t body, const char *thread_id,
                                agent_error_t **err, apr_pool_t *pool);

/* The bodies of POST /threads/{thread_id}/state/checkpoint and
 * /threads/{thread_id}/history; thread_id: as above. */
apr_status_t agent_schema_state_at(agent_raw_t body, const char *thread_id,
                                   agent_error_t **err, apr_pool_t *pool);
apr_status_t agent_schema_history(agent_raw_t body, const char *thread_id,
                                  agent_error_t **err, apr_pool_t *pool);

/* The body of POST /runs/cancel: a status, or a thread and its runs. */
apr_status_t agent_schema_cancel(const agent_fields_t **fields,
                                 agent_raw_t body, agent_error_t **err,
                                 apr_pool_t *pool);

/* The bodies of PUT and DELETE /store/items, POST /store/items/search and POST
 * /store/namespaces. */
typedef enum agent_store_body_t {
    AGENT_STORE_PUT,
    AGENT_STORE_DELETE,
    AGENT_STORE_SEARCH,
    AGENT_STORE_LIST
} agent_store_body_t;
apr_status_t agent_schema_store(agent_store_body_t kind, agent_raw_t body,
                                agent_error_t **err, apr_pool_t *pool);

/* The bodies of POST /v1/accounts, PATCH and DELETE /v1/account, POST
 * /v1/account/keys and /v1/account/keys/{key_id}/rotate. The fields of the
 * first are used. */
typedef enum agent_account_body_t {
    AGENT_ACCOUNT_SIGN_UP,
    AGENT_ACCOUNT_UPDATE,
    AGENT_ACCOUNT_DELETE,
    AGENT_ACCOUNT_KEY,
    AGENT_ACCOUNT_ROTATION
} agent_account_body_t;
apr_status_t agent_schema_account(const agent_fields_t **fields,
                                  agent_account_body_t kind, agent_raw_t body,
                                  agent_error_t **err, apr_pool_t *pool);

/* Whether a text is labels of a namespace, joined by periods; a key. */
bool agent_schema_is_namespace(const char *labels);
bool agent_schema_is_item_key(const char *key);

/* Runs that one request may create, or cancel by id. */
#define AGENT_MANY_RUNS 1000

/* The body of POST /runs/batch: an array of run bodies, each with its fields.
 */
apr_status_t agent_schema_runs(const agent_fields_t *const **runs, int *count,
                               agent_raw_t body, agent_error_t **err,
                               apr_pool_t *pool);

/* The words of parameters and members, NULL-terminated. */
extern const char *const agent_run_statuses[];
extern const char *const agent_run_fields[];
extern const char *const agent_state_fields[];
/* The words of the parameter include. */
extern const char *const agent_thread_fields[];
extern const char *const agent_cancel_actions[];
extern const char *const agent_if_exists[];
extern const char *const agent_stream_modes[];
extern const char *const agent_thread_stream_modes[];

#endif
