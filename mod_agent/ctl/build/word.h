/* SPDX-License-Identifier: Apache-2.0 */
/* Words of langgraph.json that become arguments in httpd.conf. */
#ifndef AGENT_CTL_WORD_H
#define AGENT_CTL_WORD_H

#include <stdbool.h>

#include <apr_pools.h>
#include <json-c/json.h>

/* Whether a value is one word in httpd.conf. */
bool ctl_word_is(json_object *value);

/*
 * Returns the words of a list, or the one word that value is, with separator
 * between them, in pool. NULL, after a warning that names the
 * member path and the directive, if one is not a word, or if they are too long
 * for a line.
 */
const char *ctl_word_join(json_object *value, const char *path,
                          const char *directive, const char *separator,
                          apr_pool_t *pool);

/* Whether a list has the text. */
bool ctl_word_has(json_object *list, const char *text);

/* Returns a word as a regular expression, in pool. */
const char *ctl_word_escape(const char *word, apr_pool_t *pool);

/* Returns a text as an argument in quotes, in pool. */
const char *ctl_word_quote(const char *text, apr_pool_t *pool);

/* Whether a text can be one. */
bool ctl_word_can_quote(const char *text);

#endif
