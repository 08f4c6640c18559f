/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calling a model over HTTP: one POST whose reply is a stream of server-sent
 * events, with retries. A format builds the request and reads the events.
 */
#ifndef AGENT_RUNNER_REMOTE_H
#define AGENT_RUNNER_REMOTE_H

#include "call.h"

typedef struct runner_format_t {
    /* The URL of the vendor's own service. */
    const char *url;
    /* Appended to the URL. */
    const char *path;
    /* Adds "Name: value" lines, the key among them. */
    void (*add_headers)(apr_array_header_t *headers,
                        const runner_model_t *model, apr_pool_t *pool);
    /* Builds the body, which belongs to pool. */
    json_object *(*make_request)(runner_call_t *call, apr_pool_t *pool);
    /* Reads one event; data is an object. Calls the functions of call.h, and
     * runner_remote_set_complete() or runner_remote_set_error(). */
    void (*read_event)(runner_call_t *call, json_object *data);
} runner_format_t;

/* Implement start and wake of a provider over HTTP; its start passes the
 * format.
 */
void runner_remote_start(runner_call_t *call, const runner_format_t *format);
void runner_remote_wake(runner_call_t *call);

/* The stream has ended the answer. */
void runner_remote_set_complete(runner_call_t *call);

/* The stream has an error: its equivalent HTTP status, or a constant of
 * model_error.h, and a message, which may be NULL. */
void runner_remote_set_error(runner_call_t *call, int status,
                             const char *message);

#endif
