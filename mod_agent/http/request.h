/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and validates body, query string and headers. Errors are set in
 * call->err. */
#ifndef AGENT_HTTP_REQUEST_H
#define AGENT_HTTP_REQUEST_H

#include "call.h"

/* Validates call->body as JSON; *value is borrowed from it. An empty body
 * becomes {}. Errors: MEDIA_TYPE for an encoded body, and those of
 * agent_json_scan_request(). */
apr_status_t agent_request_body(agent_raw_t *value, agent_call_t *call);

/* Largest body that is kept while its request waits for its turn; 64 metadata
 * members of 576 bytes each fit. */
#define AGENT_SMALL_BODY_BYTES 65536

/* Reads a body as agent_request_body(), of at most AGENT_SMALL_BODY_BYTES: that
 * of a search, for example. One more error: TOO_LARGE. */
apr_status_t agent_request_small_body(agent_raw_t *value, agent_call_t *call);

/* Limit of parameters in a query string. SDKs send at most two dozen, when they
 * repeat a name for each word of a list. */
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

/* The functions below leave *out unchanged when the parameter is absent. Error:
 * INVALID. */

/* Reads an integer from low to high. */
apr_status_t agent_request_number(int *out, agent_call_t *call,
                                  const char *name, int low, int high);

/* Reads one of words, which are NULL-terminated; *out is borrowed from them. */
apr_status_t agent_request_word(const char **out, agent_call_t *call,
                                const char *name, const char *const *words);

/* Reads a UUID; *out: in lower case, in call->pool. */
apr_status_t agent_request_uuid(const char **out, agent_call_t *call,
                                const char *name);

/* Reads true|1|yes or false|0|no, in any case. */
apr_status_t agent_request_flag(bool *out, agent_call_t *call,
                                const char *name);

/* Reads a flag, or a number from 0 to high. *out: all for true; unchanged for
 * false. */
apr_status_t agent_request_depth(int *out, agent_call_t *call, const char *name,
                                 int high, int all);

/*
 * Reads a list, as the SDKs send it: repeated names, a JSON array of strings,
 * or words separated by commas. *out: NULL-terminated, in call->pool, each word
 * once, borrowed from words; unchanged for an empty list too.
 */
apr_status_t agent_request_words(const char *const **out, agent_call_t *call,
                                 const char *name, const char *const *words);

/* Reads a text of at most limit bytes; *out: in call->pool, unchanged for an
 * empty one too. */
apr_status_t agent_request_text(const char **out, agent_call_t *call,
                                const char *name, apr_size_t limit);

/* Reads the values of a parameter that may be repeated. *out:
 * NULL-terminated, in call->pool; unchanged when the parameter is absent. */
void agent_request_texts(const char *const **out, agent_call_t *call,
                         const char *name);

/*
 * Reads a header that holds an identifier: 1 to limit printable ASCII
 * characters without a comma, sent once. *out: borrowed from the request; NULL
 * when the header is absent. Error: BAD_REQUEST.
 */
apr_status_t agent_request_identifier(const char **out, agent_call_t *call,
                                      const char *name, apr_size_t limit);

#endif
