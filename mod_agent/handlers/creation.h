/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that the endpoints which create runs share: reading the request,
 * creating the run, waking the supervisor. */
#ifndef AGENT_HANDLERS_CREATION_H
#define AGENT_HANDLERS_CREATION_H

#include "../http/call.h"
#include "../model/run_create.h"

/*
 * Creates the run that the request describes on thread call->ref.thread_id and
 * wakes the supervisor. *body is the run's record; call->ref becomes that run,
 * which with an Idempotency-Key may be an earlier one, of another thread.
 */
apr_status_t agent_creation_run(const char **body, agent_call_t *call);

/* The same on a new hidden thread, whose id call->ref receives too. */
apr_status_t agent_creation_stateless(const char **body, agent_call_t *call);

/* Reads x-user-id, x-api-key and Idempotency-Key. */
apr_status_t agent_creation_identify(agent_run_creation_t *creation,
                                     agent_call_t *call);

/*
 * The checks of a run's body that need this server's configuration: resolves
 * assistant_id into graph_id and assistant_id, and refuses a webhook that this
 * server would not call.
 */
apr_status_t agent_creation_resolve(agent_run_creation_t *creation,
                                    const agent_fields_t *body,
                                    agent_call_t *call);

/* A new UUIDv7, in call->pool. */
const char *agent_creation_new_id(const agent_call_t *call);

#endif
