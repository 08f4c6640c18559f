/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a request says, strictly; every error is set in call->err. */
#ifndef AGENT_HTTP_REQUEST_H
#define AGENT_HTTP_REQUEST_H

#include "call.h"

/*
 * Validates call->body without building anything. *value: its one value. An
 * empty body counts as {}; call->body is then set to that.
 */
apr_status_t agent_request_body(agent_raw_t *value, agent_call_t *call);

/* Parameters of one query string. The longest that an SDK sends names each
 * field or mode of a list by itself: two dozen. */
#define AGENT_QUERY_PARAMS 128

/*
 * Decodes the query string into call->query; without one that stays NULL.
 * Errors: INVALID for more than AGENT_QUERY_PARAMS, BAD_REQUEST for what is not
 * UTF-8. Takes the length of the string and 24 bytes a parameter, in a pool of
 * its own.
 */
apr_status_t agent_request_query(agent_call_t *call);

/* Gives its memory back. Nothing that the functions below return is in it. */
void agent_request_drop_query(agent_call_t *call);

/* A whole number of the query from low to high; *out stays when absent. */
apr_status_t agent_request_number(int *out, agent_call_t *call,
                                  const char *name, int low, int high);

/* One of words, borrowed from there; *out stays when absent. */
apr_status_t agent_request_word(const char **out, agent_call_t *call,
                                const char *name, const char *const *words);

/* true|1|yes or false|0|no in any case; *out stays when absent. */
apr_status_t agent_request_flag(bool *out, agent_call_t *call,
                                const char *name);

/*
 * A list of words: repeated names, one JSON array of strings, or both SDKs'
 * other form, words joined by commas. *out has each once, borrowed from words,
 * and ends with NULL; it stays when there are none.
 */
apr_status_t agent_request_words(const char *const **out, agent_call_t *call,
                                 const char *name, const char *const *words);

/*
 * A header that identifies something: 1 to limit visible ASCII characters,
 * sent once. *out is NULL when it is absent.
 */
apr_status_t agent_request_identity(const char **out, agent_call_t *call,
                                    const char *name, apr_size_t limit);

#endif
