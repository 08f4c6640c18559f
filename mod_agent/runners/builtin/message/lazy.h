/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that are parsed lazily: those of a state that was read from the
 * database stay text until something needs their members. Building the trees of
 * a conversation takes ten times as long as reading its text, and most messages
 * are only kept.
 *
 * A lazy message is a json-c value that prints as its text. Its type, id and
 * text are read in place (message.h); whatever else needs members opens it.
 */
#ifndef AGENT_RUNNER_LAZY_H
#define AGENT_RUNNER_LAZY_H

#include <stdbool.h>

#include <apr_pools.h>
#include <json-c/json.h>

#include "core/raw.h"

/* A lazy message with a copy of its text. *at is the first byte of an object
 * in a line that has passed the scan (core/scan.h) and becomes the byte after
 * it: the text is walked over once. The caller gets one reference. */
json_object *runner_lazy_read(const char **at);

/* The text of a message that has not been opened, borrowed from it; length 0
 * for any other value. */
agent_raw_t runner_lazy_text(json_object *message);

/* Whether a member of a message, lazy or not, is that string. */
bool runner_lazy_equals(json_object *message, const char *key,
                        const char *text);

/* Whether a member is a string that is not empty. */
bool runner_lazy_has_text(json_object *message, const char *key);

/* A member that is a string, in pool or borrowed from the message; fallback
 * when it is absent or not a string. */
const char *runner_lazy_string(json_object *message, const char *key,
                               const char *fallback, apr_pool_t *pool);

/*
 * The object with the members of a message, borrowed from it; any other value
 * is returned as it is. The tree takes the place of the text, and is built
 * once. Memory of pool is used while it is built.
 */
json_object *runner_lazy_open(json_object *message, apr_pool_t *pool);

#endif
