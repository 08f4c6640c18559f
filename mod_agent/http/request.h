/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and validates body, query string and headers. Errors are set in
 * call->err. */
#ifndef AGENT_HTTP_REQUEST_H
#define AGENT_HTTP_REQUEST_H

#include "call.h"

/* Validates call->body as JSON; *value is borrowed from it. An empty body
 * becomes {}. */
apr_status_t agent_request_body(agent_raw_t *value, agent_call_t *call);

/* Most parameters of a query string. SDKs send at most two dozen, where they
 * repeat a name for each field or mode of a list. */
#define AGENT_QUERY_PARAMS 128

/*
 * Decodes the query string into call->query; NULL without one. Errors: INVALID
 * for more than AGENT_QUERY_PARAMS, BAD_REQUEST for text that is not UTF-8.
 * Takes the length of the string and 24 bytes a parameter, in a pool of its
 * own.
 */
apr_status_t agent_request_query(agent_call_t *call);

/* Frees call->query. Results of the functions below stay valid. */
void agent_request_drop_query(agent_call_t *call);

/* An integer parameter from low to high. *out stays when it is absent. */
apr_status_t agent_request_number(int *out, agent_call_t *call,
                                  const char *name, int low, int high);

/* A parameter that is one of words; borrowed from them. *out stays when it is
 * absent. */
apr_status_t agent_request_word(const char **out, agent_call_t *call,
                                const char *name, const char *const *words);

/* A parameter true|1|yes or false|0|no, in any case. *out stays when it is
 * absent. */
apr_status_t agent_request_flag(bool *out, agent_call_t *call,
                                const char *name);

/*
 * A list parameter, as the SDKs send it: repeated names, a JSON array of
 * strings, or words separated by commas. *out: NULL-terminated, each word once,
 * borrowed from words; it stays when the list is absent or empty.
 */
apr_status_t agent_request_words(const char *const **out, agent_call_t *call,
                                 const char *name, const char *const *words);

/*
 * A header that holds an identifier: 1 to limit printable ASCII characters
 * without a comma, sent once. *out is NULL when it is absent.
 */
apr_status_t agent_request_identifier(const char **out, agent_call_t *call,
                                      const char *name, apr_size_t limit);

#endif
