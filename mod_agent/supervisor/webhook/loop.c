/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl in the loop; see loop.h. */
#include "loop.h"

#include <apr_strings.h>

#include "../base/poll.h"
#include "webhook_request.h"

/* Connections kept for the next delivery to the same receiver. */
#define KEPT_CONNECTIONS 16L
/* libcurl is called at least this often while something is sent. */
#define LONGEST_PAUSE apr_time_from_sec(1)

/* ---- calling libcurl ---- */

static void finish(agent_delivery_t *delivery, CURLcode code)
{
    agent_webhook_response_t response = {0};

    agent_webhook_request_read(&response, delivery, code);
    agent_delivery_disconnect(delivery);
    agent_delivery_end(delivery, &response);
}

static void collect_ends(agent_delivery_table_t *table)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(table->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            CURLcode code = message->data.result;
            void *delivery = NULL;

            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
                              &delivery);
            finish(delivery, code);
        }
    }
}

static void call_curl(agent_delivery_table_t *table, curl_socket_t fd)
{
    int running;

    /* With 0, libcurl checks which events the descriptor is ready for. */
    curl_multi_socket_action(table->multi, fd, 0, &running);
    collect_ends(table);
}

static void on_socket(void *part, void *item)
{
    agent_delivery_table_t *table = part;
    const agent_poll_watch_t *watch = item;

    call_curl(table, watch->fd);
}

/* ---- callbacks of libcurl ---- */

static agent_poll_watch_t *find_socket(agent_delivery_table_t *table, int fd)
{
    for (int i = 0; i < AGENT_WEBHOOK_SOCKETS; i++) {
        if (table->sockets[i].fd == fd) {
            return &table->sockets[i];
        }
    }
    return NULL;
}

static uint32_t events_of(int what)
{
    return (what & CURL_POLL_IN ? EPOLLIN : 0U)
        | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
}

static apr_status_t set_socket(agent_delivery_table_t *table,
                               agent_poll_watch_t *watch, curl_socket_t fd,
                               int what)
{
    if (what == CURL_POLL_REMOVE) {
        /* It may stay open, for another request. */
        agent_poll_remove(table->poll, watch);
        return APR_SUCCESS;
    }
    agent_poll_replace(watch, fd);
    watch->handler = on_socket;
    watch->part = table;
    watch->item = watch;
    return agent_poll_set(table->poll, watch, events_of(what));
}

/* No callback may end a transfer: the next step does. */
static void mark_unwatched(agent_delivery_table_t *table, CURL *easy,
                           apr_status_t rv)
{
    void *item = NULL;
    agent_delivery_t *delivery;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &item);
    delivery = item;
    /* NULL: a transfer of libcurl's own. */
    if (delivery != NULL) {
        delivery->watch_error = rv;
        table->has_unwatched = true;
    }
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *baton,
                        void *unused)
{
    agent_delivery_table_t *table = baton;
    agent_poll_watch_t *watch = find_socket(table, fd);

    if (watch == NULL) {
        watch = find_socket(table, -1);
    }
    /* NULL: not waited for, the transfer ends with its time-out. */
    if (watch != NULL) {
        apr_status_t rv = set_socket(table, watch, fd, what);

        if (rv != APR_SUCCESS) {
            mark_unwatched(table, easy, rv);
        }
    }
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *baton)
{
    agent_delivery_table_t *table = baton;

    /* One millisecond later: libcurl rounds down, and ignores a call that comes
     * too early. */
    table->timer_at = timeout_ms < 0
        ? AGENT_CLOCK_NEVER
        : agent_clock_now() + apr_time_from_msec(timeout_ms + 1);
    return 0;
}

/* ---- sending ---- */

static bool open_multi(agent_delivery_table_t *table)
{
    if (table->multi != NULL) {
        return true;
    }
    /* Only a process that sends webhooks needs libcurl. */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return false;
    }
    table->multi = curl_multi_init();
    if (table->multi == NULL) {
        curl_global_cleanup();
        return false;
    }
    curl_multi_setopt(table->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(table->multi, CURLMOPT_SOCKETDATA, table);
    curl_multi_setopt(table->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(table->multi, CURLMOPT_TIMERDATA, table);
    curl_multi_setopt(table->multi, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
    return true;
}

static bool add_to_multi(agent_delivery_t *delivery)
{
    agent_delivery_table_t *table = delivery->table;

    if (!open_multi(table)
        || curl_multi_add_handle(table->multi, delivery->easy) != CURLM_OK) {
        agent_report_repeat(table->context, AGENT_LOG_ERR, "AGT0363", 0,
                            "libcurl could not be started: webhooks wait");
        return false;
    }
    return true;
}

void agent_webhook_loop_send(agent_delivery_t *delivery)
{
    agent_webhook_response_t response = {0};

    response.failure = agent_webhook_request_check(delivery);
    if (response.failure == NULL) {
        if (agent_webhook_request_make(delivery) && add_to_multi(delivery)) {
            return;
        }
        response.failure = "libcurl could not be started";
        agent_delivery_disconnect(delivery);
    }
    agent_delivery_end(delivery, &response);
}

void agent_webhook_loop_close(agent_delivery_table_t *table)
{
    agent_delivery_abort(table);
    if (table->multi != NULL) {
        curl_multi_cleanup(table->multi);
        curl_global_cleanup();
        table->multi = NULL;
    }
}

/* It counts as a failed attempt. */
static void refuse_delivery(agent_delivery_t *delivery)
{
    agent_webhook_response_t response = {0};
    char error[100];

    apr_strerror(delivery->watch_error, error, sizeof(error));
    response.failure = apr_pstrcat(
        delivery->pool, "its socket cannot be watched: ", error, NULL);
    agent_delivery_disconnect(delivery);
    agent_delivery_end(delivery, &response);
}

static void end_unwatched(agent_delivery_table_t *table)
{
    agent_delivery_t *delivery;
    agent_delivery_t *next;

    table->has_unwatched = false;
    AGENT_RING_EACH_SAFE(delivery, next, &table->sending, agent_delivery_t,
                         link)
    {
        if (delivery->watch_error != APR_SUCCESS) {
            refuse_delivery(delivery);
        }
    }
}

apr_time_t agent_webhook_loop_step(agent_delivery_table_t *table)
{
    if (APR_RING_EMPTY(&table->sending, agent_delivery_t, link)) {
        return AGENT_CLOCK_NEVER;
    }
    if (table->timer_at <= table->context->now) {
        table->timer_at = table->context->now + LONGEST_PAUSE;
        call_curl(table, CURL_SOCKET_TIMEOUT);
    }
    if (table->has_unwatched) {
        end_unwatched(table);
    }
    return table->timer_at;
}
