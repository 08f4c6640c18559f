/* SPDX-License-Identifier: Apache-2.0 */
/* The one end of every error: its log line and its body. */
#ifndef AGENT_HTTP_PROBLEM_H
#define AGENT_HTTP_PROBLEM_H

#include "call.h"

/*
 * Logs call->err (5xx as error with its cause, others as info) and sends it as
 * {"detail", "code"} with its status; 503 carries Retry-After. Returns what
 * the handler returns to httpd.
 */
int agent_problem_send(agent_call_t *call);

/* Logs call->err where its body cannot be sent any more. */
void agent_problem_log(const agent_call_t *call);

#endif
