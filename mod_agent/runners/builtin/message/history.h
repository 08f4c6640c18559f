/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation in a shape that the vendors' services accept. */
#ifndef AGENT_RUNNER_HISTORY_H
#define AGENT_RUNNER_HISTORY_H

#include <stdbool.h>

#include <apr_pools.h>
#include <json-c/json.h>

/*
 * The messages, with an answer after every call of a tool: one that was never
 * made (the run was interrupted between the two) is answered with an error.
 * The array belongs to pool.
 */
json_object *runner_history_complete(json_object *messages, apr_pool_t *pool);

/* A text with characters other than letters, digits, _ and - replaced by _:
 * what vendors allow in names of tools and ids of calls. In pool or text. */
const char *runner_history_word(const char *text, apr_pool_t *pool);

/*
 * Calls add(baton, id, name, args) for each call of an AI message, the invalid
 * ones with an empty object. args is borrowed; all live as long as pool.
 */
void runner_history_calls(json_object *message,
                          void (*add)(void *baton, const char *id,
                                      const char *name, json_object *args),
                          void *baton, apr_pool_t *pool);

/* True when text has something other than white space. */
bool runner_history_has_text(const char *text);

#endif
