/* SPDX-License-Identifier: Apache-2.0 */
/* Sends bodies: at once, or bit by bit while a request waits. */
#ifndef AGENT_HTTP_RESPONSE_H
#define AGENT_HTTP_RESPONSE_H

#include "call.h"

/* Sends JSON text (in call->pool) with its length, not to be cached. Returns
 * OK. */
int agent_response_json(agent_call_t *call, int status, const char *body);

/* The same for a text that the caller frees after this: what the client does
 * not take at once is copied, where the connection holds its output. */
int agent_response_json_once(agent_call_t *call, int status, const char *body);

/* X-Pagination-Next: the offset (in call->pool) at which a list goes on after
 * what the response holds; NULL where that is its end. */
void agent_response_next(agent_call_t *call, const char *offset);

/* Sends a status without a body. Returns OK. */
int agent_response_empty(agent_call_t *call, int status);

/*
 * Location: where a response that broke off can be had once more, with the
 * query of this request. SDKs put the whole address of the API before path, so
 * it has no prefix.
 */
void agent_response_resume(agent_call_t *call, const char *path);

/*
 * Content-Location of a run, which names it to SDKs on every call that makes or
 * awaits one. again: what stands behind that path where the response can be
 * had once more (`/stream`); NULL for nowhere. thread_id NULL: a run without a
 * thread of the client's, /runs/{run_id}.
 */
void agent_response_locate(agent_call_t *call, const char *thread_id,
                           const char *run_id, const char *again);

/*
 * Begins a body of unknown length and flushes the headers: an SDK's call slot
 * is free once they are there. APR_ECONNABORTED when the client is gone.
 */
apr_status_t agent_response_begin(agent_call_t *call, const char *type);

/* Sends text at once; it need not live longer than the call. APR_ECONNABORTED
 * when the client is gone. */
apr_status_t agent_response_write(agent_call_t *call, const char *text);

/* The same of several texts, in order; ended by NULL. */
apr_status_t agent_response_write_parts(agent_call_t *call,
                                        const char *const *parts);

/*
 * Ends a response that cannot be completed, so that the client sees it cut and
 * not as finished. Returns what the handler returns to httpd.
 */
int agent_response_abort(agent_call_t *call);

#endif
