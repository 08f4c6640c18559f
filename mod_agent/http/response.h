/* SPDX-License-Identifier: Apache-2.0 */
/* Sends responses: whole, or piece by piece while a request waits. */
#ifndef AGENT_HTTP_RESPONSE_H
#define AGENT_HTTP_RESPONSE_H

#include "call.h"

/* True for the request of an ErrorDocument, which httpd makes of the refused
 * one by an internal redirect that has its status. Its response has that status
 * too, whatever the functions below are given. */
bool agent_response_is_document(const request_rec *r);

/* Sends JSON text (in call->pool) with its length, as not cacheable. Returns
 * what the handler returns: OK, or SUSPENDED while the client does not read
 * (agent_park_send_response()). httpd must not end such a request. */
int agent_response_json(agent_call_t *call, int status, const char *body)
    __attribute__((warn_unused_result));

/* The same for a text in a pool below call->pool. */
int agent_response_json_of(agent_call_t *call, int status, const char *body,
                           apr_pool_t *pool)
    __attribute__((warn_unused_result));

/* Sends JSON text as agent_response_json(), but copies output that the socket
 * does not accept at once: the caller frees the text after the call. */
int agent_response_json_transient(agent_call_t *call, int status,
                                  const char *body)
    __attribute__((warn_unused_result));

/* Sends a page in HTML (in call->pool), the same for everybody, without scripts
 * and without content of other addresses. Returns as agent_response_json(). */
int agent_response_page(agent_call_t *call, const char *html)
    __attribute__((warn_unused_result));

/* Sets X-Pagination-Next to the offset (in call->pool) of the next page; NULL:
 * this is the last. */
void agent_response_set_next(agent_call_t *call, const char *offset);

/* Sets X-Pagination-Total to the number (in call->pool) of records on all
 * pages; NULL: it is not known. */
void agent_response_set_total(agent_call_t *call, const char *count);

/* Sends a status without a body. Returns as agent_response_json(). */
int agent_response_empty(agent_call_t *call, int status)
    __attribute__((warn_unused_result));

/*
 * Sets Location to path with this request's query: SDKs reconnect there after a
 * response that was aborted. They prepend the API's URL, so path does not begin
 * with AgentPrefix.
 */
void agent_response_set_location(agent_call_t *call, const char *path);

/*
 * Sets Content-Location to the path of the run, from which SDKs read its id;
 * thread_id NULL: /runs/{run_id}, for a stateless run. Also sets Location to
 * that path with suffix, `/stream` for example, unless suffix is NULL.
 */
void agent_response_set_run_location(agent_call_t *call, const char *thread_id,
                                     const char *run_id, const char *suffix);

/*
 * Begins a 200 of unknown length and flushes its headers, on which SDKs free
 * their call slot. APR_ECONNABORTED: the client has disconnected.
 */
apr_status_t agent_response_begin(agent_call_t *call, const char *type);

/* Sends and flushes text, which may be freed afterwards. APR_ECONNABORTED: the
 * client has disconnected. */
apr_status_t agent_response_write(agent_call_t *call, const char *text);

/* Sends and flushes a NULL-terminated list of texts, as
 * agent_response_write(). */
apr_status_t agent_response_write_parts(agent_call_t *call,
                                        const char *const *parts);

/*
 * Ends a response that cannot be completed so that the client sees an error,
 * not a complete response. Returns what the handler returns to httpd.
 */
int agent_response_abort(agent_call_t *call);

#endif
