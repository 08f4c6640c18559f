/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of webhook deliveries that this process has claimed. A delivery is
 * leased: if its outcome is not saved in time it is due again, so none is lost
 * with this process.
 */
#ifndef AGENT_SUPERVISOR_DELIVERY_H
#define AGENT_SUPERVISOR_DELIVERY_H

#include <curl/curl.h>

#include "../../core/egress.h"
#include "../../core/uuid.h"
#include "../context.h"
#include "../ring.h"
#include "outcome.h"

/* Deliveries at once, those included whose outcome is not saved yet; no more
 * are claimed while their bodies sum up to this. */
#define AGENT_WEBHOOK_SLOTS     64
#define AGENT_WEBHOOK_MAX_BYTES ((apr_size_t)16 * 1024 * 1024)
/* For each: two connections that race (IPv6, IPv4), and one name resolution. */
#define AGENT_WEBHOOK_SOCKETS (3 * AGENT_WEBHOOK_SLOTS)

typedef struct agent_delivery_table_t agent_delivery_table_t;

typedef struct agent_delivery_t {
    APR_RING_ENTRY(agent_delivery_t) link;
    agent_delivery_table_t *table;
    apr_pool_t *pool;
    char account_id[AGENT_UUID_SIZE];
    char run_id[AGENT_UUID_SIZE];
    int attempt;
    const char *url;
    agent_egress_target_t target;
    const char *body;
    apr_size_t length;
    /* While it is sent; NULL before and after. */
    CURL *easy;
    struct curl_slist *headers;
    char failure[CURL_ERROR_SIZE];
    /* Of head and body of the response. */
    apr_size_t response_bytes;
    /* An address of its host that AgentWebhookAllow does not permit. */
    const char *denied;
    bool has_connected;
    /* Once it has ended; is_sent: its outcome is being saved. */
    agent_webhook_outcome_t outcome;
    bool is_sent;
} agent_delivery_t;

APR_RING_HEAD(agent_delivery_ring_t, agent_delivery_t);
typedef struct agent_delivery_ring_t agent_delivery_ring_t;

/* A descriptor that libcurl waits for; -1: unused. */
typedef struct agent_webhook_socket_t {
    int fd;
    short events;
} agent_webhook_socket_t;

struct agent_delivery_table_t {
    agent_context_t *context;
    struct agent_poll_t *poll;
    agent_delivery_ring_t sending;
    agent_delivery_ring_t ended;
    int count;
    apr_size_t bytes;
    /* Created for the first delivery. */
    CURLM *multi;
    agent_webhook_socket_t sockets[AGENT_WEBHOOK_SOCKETS];
    /* When libcurl is to be called. */
    apr_time_t timer_at;
    /* This host's addresses, and when they were read. */
    apr_array_header_t *own;
    apr_pool_t *own_pool;
    apr_time_t own_at;
};

void agent_delivery_init(agent_delivery_table_t *table,
                         agent_context_t *context, struct agent_poll_t *poll);

/* Nothing is being sent, and all outcomes are saved. */
bool agent_delivery_is_idle(const agent_delivery_table_t *table);

/* Longest attempt. */
apr_interval_time_t agent_delivery_timeout(const agent_delivery_table_t *table);

/* A delivery of that ring; account_id NULL: of any account. NULL: none. */
agent_delivery_t *agent_delivery_find(agent_delivery_ring_t *ring,
                                      const char *run_id,
                                      const char *account_id);

/* Puts it into the ring of those that are sent. */
void agent_delivery_add(agent_delivery_t *delivery);

/* It has ended: its outcome is to be saved. */
void agent_delivery_end(agent_delivery_t *delivery,
                        const agent_webhook_response_t *response);

/* Drops the connection, if there is one. */
void agent_delivery_disconnect(agent_delivery_t *delivery);

/* Frees it, or all of a ring. */
void agent_delivery_free(agent_delivery_t *delivery);
void agent_delivery_free_all(agent_delivery_ring_t *ring);

/* Aborts deliveries that are being sent: they are due again once this worker is
 * deregistered. */
void agent_delivery_abort(agent_delivery_table_t *table);

#endif
