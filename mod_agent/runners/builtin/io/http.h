/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP client: concurrent transfers on the runner's event loop. No proxy, no
 * redirects; TLS certificates are always verified.
 */
#ifndef AGENT_RUNNER_HTTP_H
#define AGENT_RUNNER_HTTP_H

#include <stdbool.h>

#include <apr_errno.h>
#include <apr_tables.h>
#include <apr_time.h>
#include <curl/curl.h>

#include "schedule.h"

/* The most active transfers, if the process may open three descriptors for each
 * and 32 others. Further transfers wait, in the order of schedule.h; they take
 * 6 KB of memory, but no descriptor, and their time-out does not run. */
#define RUNNER_HTTP_ACTIVE_MAX 256

typedef struct runner_http_t runner_http_t;
typedef struct runner_transfer_t runner_transfer_t;

/* The end of a transfer. */
typedef struct runner_reply_t {
    /* HTTP status; 0 when no reply arrived. */
    int status;
    /* Header fields, NULL when absent; in the transfer's pool. */
    const char *content_type;
    const char *retry_after;
    /* NULL when the reply is complete; else the error, for a person. */
    const char *failure;
    bool has_timed_out;
    /* A retry would fail in the same way: the certificate is not trusted, or
     * the URL is malformed. */
    bool is_final;
} runner_reply_t;

typedef struct runner_request_t {
    /* The run that makes the request; lives longer than the transfer. */
    runner_schedule_run_t *run;
    /* The host of the URL, for schedule.h. */
    const char *host;
    const char *method;
    const char *url;
    /* const char *: "Name: value". */
    apr_array_header_t *headers;
    /* NULL: no body. Must live as long as the transfer. */
    const char *body;
    size_t body_length;
    /* From the time at which the transfer is active, without the time in which
     * is_full pauses it; 0: no limit. */
    apr_interval_time_t timeout;
    /* True pauses the transfer until it returns false; NULL: never paused. */
    bool (*is_full)(void *baton);
    /* The request is never sent twice. It gets a new connection, since libcurl
     * repeats a request when a reused connection turns out to be closed. */
    bool is_once;
    /* Takes a piece of the body of a reply with that status. False ends the
     * transfer. Must not call runner_http_cancel(). */
    bool (*on_bytes)(void *baton, int status, const char *bytes, size_t length);
    /* The transfer is over; it must not be used after this. */
    void (*on_end)(void *baton, const runner_reply_t *reply);
    void *baton;
} runner_request_t;

/* Opens the client, which serves at most runs_max runs at once; it is closed
 * with pool. NULL: libcurl failed. */
runner_http_t *runner_http_open(int runs_max, apr_pool_t *pool);

/*
 * Starts a transfer, which lives until on_end, runner_http_cancel() or the end
 * of pool. NULL: the URL or a header is malformed, or memory is short; *failure
 * is the reason.
 */
runner_transfer_t *runner_http_start(runner_http_t *http,
                                     const runner_request_t *request,
                                     const char **failure, apr_pool_t *pool);

/* Whether the transfer is not active yet: nothing has been sent. */
bool runner_http_is_waiting(const runner_transfer_t *transfer);

/* Closes the connection at once; on_end is not called. */
void runner_http_cancel(runner_transfer_t *transfer);

/* The content type of the reply so far, borrowed until the end of the transfer;
 * NULL when it has none. */
const char *runner_http_content_type(runner_transfer_t *transfer);

/* Waits for the descriptors or any transfer, at most timeout_ms. */
void runner_http_wait(runner_http_t *http, struct curl_waitfd *descriptors,
                      unsigned count, int timeout_ms);

/* Whether runner_http_perform() has work that no descriptor signals: a paused
 * transfer may resume, or a waiting one may start after another was cancelled.
 */
bool runner_http_is_ready(const runner_http_t *http);

/* Performs all transfers without blocking; calls on_bytes and on_end. */
void runner_http_perform(runner_http_t *http);

#endif
