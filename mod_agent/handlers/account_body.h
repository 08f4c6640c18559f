/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of requests about accounts and their keys. */
#ifndef AGENT_HANDLERS_ACCOUNT_BODY_H
#define AGENT_HANDLERS_ACCOUNT_BODY_H

#include "../http/call.h"
#include "../model/schema.h"

/* Reads the body, and sets call->fields to its members. Errors: those of
 * agent_request_small_body() and agent_schema_account(). */
apr_status_t agent_account_body_read(agent_raw_t *body, agent_call_t *call,
                                     agent_account_body_t kind);

#endif
