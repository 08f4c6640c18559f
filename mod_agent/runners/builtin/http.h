/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP as a client, many transfers at once on the runner's one loop. No proxy,
 * no redirect, TLS always verified.
 */
#ifndef AGENT_RUNNER_HTTP_H
#define AGENT_RUNNER_HTTP_H

#include <stdbool.h>

#include <apr_errno.h>
#include <apr_tables.h>
#include <apr_time.h>
#include <curl/curl.h>

/* Transfers that are under way at once, where the process may open enough
 * descriptors; the others wait in the order in which they were begun. */
#define RUNNER_HTTP_ACTIVE_MAX 256

typedef struct runner_http_t runner_http_t;
typedef struct runner_transfer_t runner_transfer_t;

/* How a transfer ended. */
typedef struct runner_reply_t {
    /* HTTP status; 0 when none arrived. */
    int status;
    /* Header fields, NULL when absent; in the transfer's pool. */
    const char *content_type;
    const char *retry_after;
    /* NULL when the reply arrived whole; else what went wrong, for a person. */
    const char *failure;
    bool has_timed_out;
    /* The next attempt would fail in the same way: the certificate is not
     * trusted, the URL is not one. */
    bool is_final;
} runner_reply_t;

typedef struct runner_request_t {
    const char *method;
    const char *url;
    /* const char *: "Name: value". */
    apr_array_header_t *headers;
    /* NULL: no body. Must live as long as the transfer. */
    const char *body;
    size_t body_length;
    /* From the moment at which it is under way; 0: no limit. */
    apr_interval_time_t timeout;
    /* True pauses the transfer until it returns false; NULL: never paused. */
    bool (*is_full)(void *baton);
    /* Never send twice: a connection of its own, since libcurl repeats a
     * request when a connection that it used before turns out to be dead. */
    bool is_once;
    /*
     * A piece of the body; status is the reply's. False ends the transfer.
     * Must not cancel the transfer.
     */
    bool (*on_bytes)(void *baton, int status, const char *bytes, size_t length);
    /* The transfer is over and must not be used any more. */
    void (*on_end)(void *baton, const runner_reply_t *reply);
    void *baton;
} runner_request_t;

/* Opens the client; closed with pool. NULL when libcurl cannot start. */
runner_http_t *runner_http_open(apr_pool_t *pool);

/*
 * Begins a transfer that lives until on_end, runner_http_cancel() or the end
 * of pool. NULL when the URL or a header is unusable (*failure says why).
 */
runner_transfer_t *runner_http_start(runner_http_t *http,
                                     const runner_request_t *request,
                                     const char **failure, apr_pool_t *pool);

/* Whether it waits for others to end: nothing has been sent yet. */
bool runner_http_is_waiting(const runner_transfer_t *transfer);

/* Drops the connection at once; on_end is not called. */
void runner_http_cancel(runner_transfer_t *transfer);

/* The type of the reply as far as it has arrived, borrowed until the transfer's
 * end; NULL when it has none. For on_bytes. */
const char *runner_http_content_type(runner_transfer_t *transfer);

/* Waits for the given descriptors or any transfer, at most timeout_ms. */
void runner_http_wait(runner_http_t *http, struct curl_waitfd *descriptors,
                      unsigned count, int timeout_ms);

/* Whether runner_http_perform() has work that no descriptor signals: a paused
 * transfer may go on, or a waiting one may begin since another was cancelled.
 */
bool runner_http_is_ready(const runner_http_t *http);

/* Does what can be done now; calls on_bytes and on_end. */
void runner_http_perform(runner_http_t *http);

/* "host:port" or "host" of a URL, in pool; the URL itself if it is none. */
const char *runner_http_host(const char *url, apr_pool_t *pool);

#endif
