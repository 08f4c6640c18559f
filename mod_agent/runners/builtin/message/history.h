/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation in the form that the vendors' services accept. */
#ifndef AGENT_RUNNER_HISTORY_H
#define AGENT_RUNNER_HISTORY_H

#include <stdbool.h>

#include <apr_pools.h>
#include <json-c/json.h>

/*
 * The messages with a result for every tool call: a call without one, because
 * its run was interrupted, gets an error. The array belongs to pool.
 */
json_object *runner_history_add_results(json_object *messages,
                                        apr_pool_t *pool);

/* A tool's name or a call's id as the vendors allow it, in pool: characters
 * other than letters, digits, _ and - are replaced by _. */
const char *runner_history_make_name(const char *text, apr_pool_t *pool);

/*
 * Calls add(baton, id, name, args) for each tool call of an AI message; args of
 * an invalid call is an empty object. The arguments live as long as pool.
 */
void runner_history_visit_calls(json_object *message,
                                void (*add)(void *baton, const char *id,
                                            const char *name,
                                            json_object *args),
                                void *baton, apr_pool_t *pool);

/* Whether text has a character other than white space. */
bool runner_history_has_text(const char *text);

#endif
