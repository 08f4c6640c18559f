/* SPDX-License-Identifier: Apache-2.0 */
/* What the creations of runs have in common: body, headers, assistant, ids. */
#ifndef AGENT_HANDLERS_CREATION_H
#define AGENT_HANDLERS_CREATION_H

#include "../http/call.h"
#include "../model/run_create.h"

/*
 * Reads and checks body and headers of a request that creates one run on
 * thread call->ids[1], or on a new one when that is NULL.
 */
apr_status_t agent_creation_read(agent_run_creation_t *creation,
                                 agent_call_t *call);

/* Reads the headers that say who asks, and the Idempotency-Key. */
apr_status_t agent_creation_identify(agent_run_creation_t *creation,
                                     agent_call_t *call);

/* What of a body only this server can tell: reads assistant_id into graph_id
 * and assistant_id, and whether its webhook may be called. */
apr_status_t agent_creation_resolve(agent_run_creation_t *creation,
                                    const agent_fields_t *body,
                                    agent_call_t *call);

/* A new UUIDv7, in call->pool. */
const char *agent_creation_new_id(const agent_call_t *call);

/* Sets call->ids[1] and [2] to thread and run of the record that came back. */
void agent_creation_name(agent_call_t *call,
                         const agent_run_creation_t *creation,
                         const char *record);

#endif
