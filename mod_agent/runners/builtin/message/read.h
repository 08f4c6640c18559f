/* SPDX-License-Identifier: Apache-2.0 */
/* Reading messages in the forms that clients send. */
#ifndef AGENT_RUNNER_READ_H
#define AGENT_RUNNER_READ_H

#include <json-c/json.h>

#include "runners/builtin/base/problem.h"

/*
 * Converts a client's message (with role or type, text or blocks, in the
 * serialised form of the LangChain libraries, or a plain string) to a message
 * of the state; *out is one reference. Adds a missing id; moves unknown fields
 * to additional_kwargs. A message of type `remove` becomes {type, id}. where is
 * the path in the input ("messages/0") for the problem. APR_EGENERAL: *problem
 * is set.
 */
apr_status_t runner_read_message(json_object **out, json_object *given,
                                 const char *where, runner_problem_t **problem,
                                 apr_pool_t *pool);

#endif
