/* SPDX-License-Identifier: Apache-2.0 */
/* Creates runs for the endpoints: reads the request, creates the run and wakes
 * the supervisor. */
#ifndef AGENT_HANDLERS_CREATION_H
#define AGENT_HANDLERS_CREATION_H

#include "../http/call.h"
#include "../model/run_create.h"

/*
 * Creates the run that the request describes, on thread call->ref.thread_id or,
 * if that is NULL, as a stateless run on a new thread, and wakes the
 * supervisor. Sets the response's Content-Location. *body is the run's record,
 * in call->pool; call->ref becomes that run, which with an Idempotency-Key may
 * be an earlier one, of another thread. Errors are set in call->err.
 */
apr_status_t agent_creation_make(const char **body, agent_call_t *call);

/*
 * Creates a run as agent_creation_make(), for a request that then waits for it;
 * if it could not wait, it is refused before the run is created. Also sets
 * Location, from which the client reconnects: the path of the run with suffix,
 * `/join` for example.
 */
apr_status_t agent_creation_make_awaited(agent_call_t *call,
                                         const char *suffix);

/* Whether the request could wait now; is_stream: as a stream. To be called
 * before the run or call to wait for is created. Errors: those of
 * agent_park_check(). */
apr_status_t agent_creation_check_room(agent_call_t *call, bool is_stream);

/*
 * Reads what the server adds to config.configurable: the headers that
 * AgentConfigurableHeaders selects, with their names in lower case, and the
 * authenticated user. *out is an object, in call->pool; NULL if there is
 * neither. Errors: BAD_REQUEST, HEAD_TOO_LARGE.
 */
apr_status_t agent_creation_read_configurable(const char **out,
                                              agent_call_t *call);

/* Reads the user and Idempotency-Key into creation, and checks x-api-key.
 * Error: BAD_REQUEST. */
apr_status_t agent_creation_read_headers(agent_run_creation_t *creation,
                                         agent_call_t *call);

/*
 * Checks a run's body against the endpoint and this server's configuration:
 * resolves assistant_id into graph_id and assistant_id, and refuses a webhook
 * that this server would not call. is_awaited: the request waits for the run.
 * Errors: ASSISTANT_NOT_FOUND, INVALID, WEBHOOK.
 */
apr_status_t agent_creation_resolve(agent_run_creation_t *creation,
                                    const agent_fields_t *body, bool is_awaited,
                                    agent_call_t *call);

/* Returns the names of the graphs of the call's deployment, NULL-terminated, in
 * call->pool. */
const char *const *agent_creation_list_graphs(const agent_call_t *call);

/* Prints a lifetime as an interval of PostgreSQL, in call->pool; NULL for 0. */
const char *agent_creation_print_ttl(const agent_call_t *call,
                                     apr_interval_time_t ttl);

/* AgentThreadTTL, printed. */
const char *agent_creation_thread_ttl(const agent_call_t *call);

/* Makes a UUIDv7, in call->pool. */
const char *agent_creation_new_id(const agent_call_t *call);

/* Returns the UUID that the body has as this member, in lower case, or a new
 * one; in call->pool. */
const char *agent_creation_choose_id(const agent_call_t *call, const char *key);

#endif
