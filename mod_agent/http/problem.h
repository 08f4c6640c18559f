/* SPDX-License-Identifier: Apache-2.0 */
/* Logs errors of requests and sends them. */
#ifndef AGENT_HTTP_PROBLEM_H
#define AGENT_HTTP_PROBLEM_H

#include "call.h"

/*
 * Logs call->err (5xx at level error with its cause, others at info) and sends
 * it as {"detail", "code"} with its status; 503 has Retry-After. Returns what
 * the handler returns to httpd.
 */
int agent_problem_send(agent_call_t *call) __attribute__((warn_unused_result));

/* Logs call->err; for responses that have begun. */
void agent_problem_log(const agent_call_t *call);

#endif
