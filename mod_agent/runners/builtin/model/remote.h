/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the models behind HTTP share: one POST whose answer streams as
 * server-sent events, with retries. A format says how to ask and how to read.
 */
#ifndef AGENT_RUNNER_REMOTE_H
#define AGENT_RUNNER_REMOTE_H

#include "call.h"

typedef struct runner_format_t {
    /* Where the vendor's own service is. */
    const char *url;
    /* What follows the URL. */
    const char *path;
    /* Adds "Name: value" lines; the key is among them. */
    void (*add_headers)(apr_array_header_t *headers,
                        const runner_model_t *model, apr_pool_t *pool);
    /* The body; belongs to pool. */
    json_object *(*make_request)(runner_call_t *call, apr_pool_t *pool);
    /* One event of the answer; data is an object. */
    void (*read_event)(runner_call_t *call, json_object *data);
} runner_format_t;

/* The two functions of a provider. start's caller gives the format. */
void runner_remote_start(runner_call_t *call, const runner_format_t *format);
void runner_remote_wake(runner_call_t *call);

/* For read_event: the answer is complete. */
void runner_remote_complete(runner_call_t *call);

/* For read_event: the model reports an error inside its stream; status is the
 * HTTP status that means the same. */
void runner_remote_refuse(runner_call_t *call, int status, const char *message);

#endif
