/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi interface with pools and callbacks. */
#include "http.h"

#include <string.h>
#include <sys/resource.h>

#include <apr_strings.h>

#include "core/clock.h"
#include "core/ring.h"

#define CONNECT_TIMEOUT_MS 10000L
#define REDIRECT_NONE      0L
/* The size of a piece of a transfer that can be paused: each byte may become
 * hundreds of bytes of output. */
#define PIECE_BYTES 1024L

struct runner_transfer_t {
    APR_RING_ENTRY(runner_transfer_t) link;
    runner_schedule_entry_t entry;
    runner_http_t *http;
    apr_pool_t *pool;
    runner_request_t request;
    CURL *easy;
    struct curl_slist *headers;
    /* It is in one of the rings of http, active or waiting. */
    bool is_open;
    bool is_paused;
    /* on_bytes ended the transfer. */
    bool was_refused;
    /* The end of the time-out, moved by the length of each pause. */
    apr_time_t expires_at;
    /* The start of the current pause. */
    apr_time_t paused_at;
    char failure[CURL_ERROR_SIZE];
};

typedef APR_RING_HEAD(transfer_ring_t, runner_transfer_t) transfer_ring_t;

struct runner_http_t {
    CURLM *multi;
    runner_schedule_t *schedule;
    transfer_ring_t active;
    transfer_ring_t waiting;
    /* The number of paused transfers, which are active. */
    int paused;
    /* No transfer expires before this time. */
    apr_time_t expires_at;
};

/* Descriptors that the process needs for other purposes. */
#define DESCRIPTORS_KEPT 32
/* Descriptors of a transfer: its connection, and the socket pair of the thread
 * that resolves its name. */
#define DESCRIPTORS_EACH 3

static int find_active_max(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    rlim_t most;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur <= DESCRIPTORS_KEPT + DESCRIPTORS_EACH) {
        return 1;
    }
    most = (limit.rlim_cur - DESCRIPTORS_KEPT) / DESCRIPTORS_EACH;
    return most < RUNNER_HTTP_ACTIVE_MAX ? (int)most : RUNNER_HTTP_ACTIVE_MAX;
}

static apr_status_t close_http(void *baton)
{
    runner_http_t *http = baton;

    while (!APR_RING_EMPTY(&http->waiting, runner_transfer_t, link)) {
        runner_http_cancel(APR_RING_FIRST(&http->waiting));
    }
    while (!APR_RING_EMPTY(&http->active, runner_transfer_t, link)) {
        runner_http_cancel(APR_RING_FIRST(&http->active));
    }
    curl_multi_cleanup(http->multi);
    curl_global_cleanup();
    return APR_SUCCESS;
}

runner_http_t *runner_http_open(int runs_max, apr_pool_t *pool)
{
    runner_http_t *http = apr_pcalloc(pool, sizeof(*http));
    int active_max = find_active_max();

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return NULL;
    }
    http->multi = curl_multi_init();
    if (http->multi == NULL) {
        curl_global_cleanup();
        return NULL;
    }
    http->schedule = runner_schedule_make(active_max, runs_max, pool);
    /* Idle connections are descriptors too. */
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)active_max);
    http->expires_at = AGENT_CLOCK_NEVER;
    APR_RING_INIT(&http->active, runner_transfer_t, link);
    APR_RING_INIT(&http->waiting, runner_transfer_t, link);
    apr_pool_cleanup_register(pool, http, close_http, apr_pool_cleanup_null);
    return http;
}

static bool is_full(const runner_transfer_t *transfer)
{
    const runner_request_t *request = &transfer->request;

    return request->is_full != NULL && request->is_full(request->baton);
}

static void pause_transfer(runner_transfer_t *transfer)
{
    if (!transfer->is_paused) {
        transfer->is_paused = true;
        transfer->paused_at = agent_clock_now();
        transfer->http->paused++;
    }
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *baton)
{
    runner_transfer_t *transfer = baton;
    size_t length = size * count;
    long status = 0;

    if (is_full(transfer)) {
        pause_transfer(transfer);
        return CURL_WRITEFUNC_PAUSE;
    }
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!transfer->request.on_bytes(transfer->request.baton, (int)status, bytes,
                                    length)) {
        transfer->was_refused = true;
        return length + 1;
    }
    return length;
}

const char *runner_http_content_type(runner_transfer_t *transfer)
{
    char *type = NULL;

    curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_TYPE, &type);
    return type;
}

/* The first transfer after previous that is paused and need not be; NULL when
 * there is none. previous may be NULL. */
static runner_transfer_t *find_resumable(const runner_http_t *http,
                                         const runner_transfer_t *previous)
{
    runner_transfer_t *transfer = previous != NULL
        ? APR_RING_NEXT(previous, link)
        : APR_RING_FIRST(&http->active);

    while (http->paused > 0
           && transfer
               != APR_RING_SENTINEL(&http->active, runner_transfer_t, link)) {
        if (transfer->is_paused && !is_full(transfer)) {
            return transfer;
        }
        transfer = APR_RING_NEXT(transfer, link);
    }
    return NULL;
}

static void set_safety(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, REDIRECT_NONE);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* A cancelled transfer must not wait for its name to be resolved: the
     * thread of the resolver ends later by itself. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
}

static void set_body(CURL *easy, const runner_request_t *request)
{
    if (request->body != NULL) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)request->body_length);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static bool set_headers(runner_transfer_t *transfer)
{
    apr_array_header_t *headers = transfer->request.headers;

    /* Without this libcurl sends "Expect: 100-continue" before a body of 1 MiB,
     * and waits a second for servers that do not support it. */
    transfer->headers = curl_slist_append(NULL, "Expect:");
    for (int i = 0; headers != NULL && i < headers->nelts; i++) {
        const char *line = APR_ARRAY_IDX(headers, i, const char *);
        struct curl_slist *more;

        /* A line break in a value would begin another header. */
        if (strpbrk(line, "\r\n") != NULL) {
            return false;
        }
        more = curl_slist_append(transfer->headers, line);
        if (more == NULL) {
            return false;
        }
        transfer->headers = more;
    }
    curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
    return true;
}

static CURLcode set_request(runner_transfer_t *transfer)
{
    const runner_request_t *request = &transfer->request;
    CURL *easy = transfer->easy;

    set_safety(easy);
    set_body(easy, request);
    if (request->is_full != NULL) {
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, PIECE_BYTES);
    }
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request->is_once ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, request->is_once ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->failure);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    return curl_easy_setopt(easy, CURLOPT_URL, request->url);
}

void runner_http_cancel(runner_transfer_t *transfer)
{
    runner_http_t *http = transfer->http;

    if (!transfer->is_open) {
        return;
    }
    transfer->is_open = false;
    if (transfer->is_paused) {
        http->paused--;
    }
    APR_RING_REMOVE(transfer, link);
    if (!runner_http_is_waiting(transfer)) {
        curl_multi_remove_handle(http->multi, transfer->easy);
    }
    runner_schedule_remove(http->schedule, &transfer->entry);
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
}

bool runner_http_is_waiting(const runner_transfer_t *transfer)
{
    return transfer->entry.queue != NULL;
}

static apr_status_t end_with_pool(void *baton)
{
    runner_http_cancel(baton);
    return APR_SUCCESS;
}

static void set_expiry(runner_transfer_t *transfer, apr_time_t when)
{
    runner_http_t *http = transfer->http;

    transfer->expires_at = when;
    http->expires_at = when < http->expires_at ? when : http->expires_at;
}

/* libcurl refuses a handle only when memory is short: the transfer stays first
 * and is started after another has ended. */
static void start_waiting(runner_http_t *http)
{
    runner_schedule_entry_t *entry;

    while ((entry = runner_schedule_next(http->schedule)) != NULL) {
        runner_transfer_t *transfer = entry->baton;

        if (curl_multi_add_handle(http->multi, transfer->easy) != CURLM_OK) {
            return;
        }
        runner_schedule_start(http->schedule, entry);
        APR_RING_REMOVE(transfer, link);
        APR_RING_INSERT_TAIL(&http->active, transfer, runner_transfer_t, link);
        set_expiry(transfer,
                   transfer->request.timeout > 0
                       ? agent_clock_now() + transfer->request.timeout
                       : AGENT_CLOCK_NEVER);
    }
}

static void add_waiting(runner_http_t *http, runner_transfer_t *transfer)
{
    transfer->entry.baton = transfer;
    transfer->entry.run = transfer->request.run;
    transfer->entry.host = runner_schedule_find_host(http->schedule,
                                                     transfer->request.host);
    runner_schedule_add(http->schedule, &transfer->entry);
    transfer->is_open = true;
    APR_RING_INSERT_TAIL(&http->waiting, transfer, runner_transfer_t, link);
}

runner_transfer_t *runner_http_start(runner_http_t *http,
                                     const runner_request_t *request,
                                     const char **failure, apr_pool_t *pool)
{
    runner_transfer_t *transfer = apr_pcalloc(pool, sizeof(*transfer));

    transfer->http = http;
    transfer->pool = pool;
    transfer->request = *request;
    transfer->easy = curl_easy_init();
    if (transfer->easy == NULL) {
        *failure = "libcurl is out of memory";
        return NULL;
    }
    if (!set_headers(transfer) || set_request(transfer) != CURLE_OK) {
        curl_easy_cleanup(transfer->easy);
        curl_slist_free_all(transfer->headers);
        *failure = "the request cannot be sent: a header or the URL is "
                   "malformed";
        return NULL;
    }
    add_waiting(http, transfer);
    apr_pool_cleanup_register(pool, transfer, end_with_pool,
                              apr_pool_cleanup_null);
    start_waiting(http);
    return transfer;
}

void runner_http_wait(runner_http_t *http, struct curl_waitfd *descriptors,
                      unsigned count, int timeout_ms)
{
    apr_time_t now = agent_clock_now();

    if (http->expires_at - now < apr_time_from_msec(timeout_ms)) {
        /* Rounded up: an early wake-up would find nothing expired. */
        timeout_ms = http->expires_at > now
            ? (int)((http->expires_at - now + 999) / 1000)
            : 0;
    }
    curl_multi_poll(http->multi, descriptors, count, timeout_ms, NULL);
}

static const char *find_header(runner_transfer_t *transfer, const char *name)
{
    struct curl_header *header;

    if (curl_easy_header(transfer->easy, name, 0, CURLH_HEADER, -1, &header)
        != CURLHE_OK) {
        return NULL;
    }
    return apr_pstrdup(transfer->pool, header->value);
}

static const char *describe_failure(runner_transfer_t *transfer, CURLcode code)
{
    if (code == CURLE_OK) {
        return NULL;
    }
    return apr_pstrdup(transfer->pool,
                       transfer->failure[0] != '\0' ? transfer->failure
                                                    : curl_easy_strerror(code));
}

static bool is_final_failure(CURLcode code)
{
    return code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT
        || code == CURLE_PEER_FAILED_VERIFICATION;
}

static void finish_transfer(runner_transfer_t *transfer, CURLcode code)
{
    runner_reply_t reply;
    long status = 0;

    memset(&reply, 0, sizeof(reply));
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    reply.status = (int)status;
    reply.content_type = find_header(transfer, "content-type");
    reply.retry_after = find_header(transfer, "retry-after");
    reply.is_final = is_final_failure(code);
    reply.has_timed_out = code == CURLE_OPERATION_TIMEDOUT;
    /* The caller knows why on_bytes has ended the transfer. */
    reply.failure = transfer->was_refused ? NULL
                                          : describe_failure(transfer, code);
    runner_http_cancel(transfer);
    apr_pool_cleanup_kill(transfer->pool, transfer, end_with_pool);
    transfer->request.on_end(transfer->request.baton, &reply);
}

bool runner_http_is_ready(const runner_http_t *http)
{
    return runner_schedule_next(http->schedule) != NULL
        || find_resumable(http, NULL) != NULL;
}

/* libcurl delivers the bytes that it has kept during curl_easy_pause(), which
 * may pause the transfer again. */
static void resume_paused(runner_http_t *http)
{
    runner_transfer_t *transfer = NULL;

    while ((transfer = find_resumable(http, transfer)) != NULL) {
        transfer->is_paused = false;
        http->paused--;
        if (transfer->expires_at != AGENT_CLOCK_NEVER) {
            set_expiry(transfer,
                       transfer->expires_at + agent_clock_now()
                           - transfer->paused_at);
        }
        curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
    }
}

/* The first transfer that has expired; when there is none, NULL, and updates
 * http->expires_at. A paused transfer does not expire. */
static runner_transfer_t *find_expired(runner_http_t *http, apr_time_t now)
{
    apr_time_t first = AGENT_CLOCK_NEVER;
    runner_transfer_t *transfer;

    if (now < http->expires_at) {
        return NULL;
    }
    APR_RING_FOREACH(transfer, &http->active, runner_transfer_t, link)
    {
        if (!transfer->is_paused && transfer->expires_at <= now) {
            return transfer;
        }
        if (!transfer->is_paused && transfer->expires_at < first) {
            first = transfer->expires_at;
        }
    }
    http->expires_at = first;
    return NULL;
}

static void end_expired(runner_http_t *http)
{
    apr_time_t now = agent_clock_now();
    runner_transfer_t *transfer;

    while ((transfer = find_expired(http, now)) != NULL) {
        finish_transfer(transfer, CURLE_OPERATION_TIMEDOUT);
    }
}

void runner_http_perform(runner_http_t *http)
{
    CURLMsg *message;
    int running;
    int left;

    /* Cancelled transfers have left room. */
    start_waiting(http);
    if (APR_RING_EMPTY(&http->active, runner_transfer_t, link)) {
        return;
    }
    resume_paused(http);
    curl_multi_perform(http->multi, &running);
    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            void *transfer = NULL;

            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
                              &transfer);
            finish_transfer(transfer, message->data.result);
        }
    }
    end_expired(http);
}
