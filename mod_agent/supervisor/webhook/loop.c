/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl in the supervisor's loop; see webhook.h. It says which descriptors
 * it waits for and when it wants to be called, and is told what became ready.
 */
#include "webhook.h"

#include "../instance.h"

/* Connections kept for the next delivery to the same receiver. */
#define KEPT_CONNECTIONS 16L
/* libcurl is called at least so often while something is sent. */
#define LONGEST_PAUSE apr_time_from_sec(1)

/* ---- what libcurl asks for ---- */

static agent_webhook_socket_t *find_socket(agent_webhook_table_t *table, int fd)
{
    for (int i = 0; i < AGENT_WEBHOOK_SOCKETS; i++) {
        if (table->sockets[i].fd == fd) {
            return &table->sockets[i];
        }
    }
    return NULL;
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *baton,
                        void *unused)
{
    agent_webhook_table_t *table = baton;
    agent_webhook_socket_t *place = find_socket(table, fd);

    if (place == NULL) {
        place = find_socket(table, -1);
    }
    if (place == NULL) {
        /* Its transfer ends with its time-out. */
        return 0;
    }
    place->fd = what == CURL_POLL_REMOVE ? -1 : fd;
    place->events = (short)((what & CURL_POLL_IN ? POLLIN : 0)
                            | (what & CURL_POLL_OUT ? POLLOUT : 0));
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *baton)
{
    agent_webhook_table_t *table = baton;

    /* One more millisecond: libcurl rounds, and ignores a call that comes too
     * early. */
    table->timer_at = timeout_ms < 0
        ? AGENT_NEVER
        : agent_process_clock() + apr_time_from_msec(timeout_ms + 1);
    return 0;
}

/* ---- its life ---- */

static bool open_multi(agent_supervisor_t *sv)
{
    agent_webhook_table_t *table = &sv->webhooks;

    if (table->multi != NULL) {
        return true;
    }
    /* Here and not earlier: only in this process, and only if needed. */
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

bool agent_webhook_loop_add(agent_delivery_t *delivery)
{
    agent_supervisor_t *sv = delivery->sv;

    if (!open_multi(sv)
        || curl_multi_add_handle(sv->webhooks.multi, delivery->easy)
            != CURLM_OK) {
        agent_report_repeat(sv, AGENT_LOG_ERR, "AGT0363", 0,
                            "libcurl could not be started: webhooks wait");
        return false;
    }
    return true;
}

void agent_webhook_close(agent_supervisor_t *sv)
{
    agent_webhook_abort(sv);
    if (sv->webhooks.multi != NULL) {
        curl_multi_cleanup(sv->webhooks.multi);
        curl_global_cleanup();
        sv->webhooks.multi = NULL;
    }
}

/* ---- turns ---- */

static void collect_ends(agent_supervisor_t *sv)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(sv->webhooks.multi, &left))
           != NULL) {
        if (message->msg == CURLMSG_DONE) {
            CURLcode code = message->data.result;
            void *delivery = NULL;

            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
                              &delivery);
            agent_webhook_finish(delivery, code);
        }
    }
}

static void act(agent_supervisor_t *sv, curl_socket_t fd)
{
    int running;

    /* 0: libcurl looks itself what the descriptor is ready for. */
    curl_multi_socket_action(sv->webhooks.multi, fd, 0, &running);
    collect_ends(sv);
}

static void on_socket(agent_supervisor_t *sv, void *baton)
{
    const agent_webhook_socket_t *place = baton;

    /* An earlier handler of this turn may have ended it. */
    if (sv->webhooks.multi != NULL && place->fd >= 0) {
        act(sv, place->fd);
    }
}

apr_time_t agent_webhook_step(agent_supervisor_t *sv)
{
    agent_webhook_table_t *table = &sv->webhooks;

    if (APR_RING_EMPTY(&table->sending, agent_delivery_t, link)) {
        return AGENT_NEVER;
    }
    if (table->timer_at <= sv->now) {
        table->timer_at = sv->now + LONGEST_PAUSE;
        act(sv, CURL_SOCKET_TIMEOUT);
    }
    return table->timer_at;
}

void agent_webhook_poll(agent_supervisor_t *sv)
{
    agent_webhook_table_t *table = &sv->webhooks;

    for (int i = 0; i < AGENT_WEBHOOK_SOCKETS; i++) {
        if (table->sockets[i].fd >= 0) {
            agent_poll_add(sv, table->sockets[i].fd, table->sockets[i].events,
                           on_socket, &table->sockets[i]);
        }
    }
}
