/* SPDX-License-Identifier: Apache-2.0 */
/* Logs errors of requests and sends them. */
#ifndef AGENT_HTTP_PROBLEM_H
#define AGENT_HTTP_PROBLEM_H

#include "call.h"

/*
 * Logs call->err (5xx at level error with its cause, others at info) and sends
 * it as {"detail", "code", ...} with its status; 401 has
 * WWW-Authenticate, 503 and a limit have Retry-After. Returns what the handler
 * returns to httpd.
 */
int agent_problem_send(agent_call_t *call) __attribute__((warn_unused_result));

/* Sets the challenge of a 401, WWW-Authenticate; agent_problem_send() does.
 * realm NULL: `agent`. */
void agent_problem_challenge(request_rec *r, const char *realm);

/* Returns the object {"error", "message"}, in pool, for errors within a
 * response that has begun. */
const char *agent_problem_object(const agent_error_t *err, apr_pool_t *pool);

/* Returns the body of an error, in pool. */
const char *agent_problem_body(const agent_error_t *err, apr_pool_t *pool);

/* Logs call->err; for responses that have begun. */
void agent_problem_log(const agent_call_t *call);

/* Refuses a request in a hook before the handler: logs the error and returns
 * its status, with which httpd ends the request; server_error.h has the body.
 * The caller sets the challenge of a 401. err lives as long as r->pool. child
 * may be NULL for errors below 500. */
int agent_problem_refuse(request_rec *r, const agent_child_t *child,
                         const agent_error_t *err);

/* Returns the error of agent_problem_refuse() for the request; NULL: none. */
const agent_error_t *agent_problem_of(const request_rec *r);

#endif
