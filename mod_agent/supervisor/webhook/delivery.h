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
#include "../base/context.h"
#include "../base/poll.h"
#include "../base/ring.h"
#include "outcome.h"

/* The most deliveries at once, those whose outcome is not saved yet included,
 * and the most bytes of their bodies, which one body of each deployment may
 * exceed. */
#define AGENT_WEBHOOK_SLOTS     64
#define AGENT_WEBHOOK_MAX_BYTES ((apr_size_t)16 * 1024 * 1024)
/* Sockets: for each delivery two connections that race (IPv6, IPv4), and one
 * name resolution. */
#define AGENT_WEBHOOK_SOCKETS (3 * AGENT_WEBHOOK_SLOTS)

typedef struct agent_delivery_table_t agent_delivery_table_t;

typedef struct agent_delivery_t {
    APR_RING_ENTRY(agent_delivery_t) link;
    agent_delivery_table_t *table;
    apr_pool_t *pool;
    char deployment_id[AGENT_UUID_SIZE];
    char run_id[AGENT_UUID_SIZE];
    int attempt;
    /* Its deployment's; NULL: it is not signed. */
    const agent_webhook_key_t *key;
    /* The deployment whose headers it gets; NULL: those of all that have none.
     */
    const char *deployment;
    const char *url;
    agent_egress_target_t target;
    const char *body;
    apr_size_t length;
    /* The transfer and its headers; NULL before it begins and after it ended.
     */
    CURL *easy;
    struct curl_slist *headers;
    /* libcurl's message about a failure. */
    char failure[CURL_ERROR_SIZE];
    /* Bytes received: head and body of the response. */
    apr_size_t response_bytes;
    /* An address of its host that AgentWebhookAllow does not permit; NULL when
     * none was found. */
    const char *denied;
    /* One of its addresses is permitted. */
    bool has_permitted_address;
    /* Why the kernel refuses to watch its socket; APR_SUCCESS: it does not. */
    apr_status_t watch_error;
    /* Set when it has ended; the statement in flight saves it. */
    agent_webhook_outcome_t outcome;
    bool is_saving;
} agent_delivery_t;

APR_RING_HEAD(agent_delivery_ring_t, agent_delivery_t);
typedef struct agent_delivery_ring_t agent_delivery_ring_t;

struct agent_delivery_table_t {
    agent_context_t *context;
    agent_poll_t *poll;
    /* Being sent; ended, with an outcome that is not saved yet. */
    agent_delivery_ring_t sending;
    agent_delivery_ring_t ended;
    /* Deliveries in both rings, and bytes of their bodies. */
    int count;
    apr_size_t bytes;
    /* The parts of both that are guaranteed to each deployment with a pool
     * here: half of them, divided equally. */
    int guaranteed;
    apr_size_t guaranteed_bytes;
    /* Created for the first delivery. */
    CURLM *multi;
    /* Sockets that libcurl waits for; the others have the descriptor -1. */
    agent_poll_watch_t sockets[AGENT_WEBHOOK_SOCKETS];
    /* A delivery that is being sent has a watch_error. */
    bool has_unwatched;
    /* When libcurl is to be called (core/clock.h). */
    apr_time_t timer_at;
    /* This host's addresses, their pool, and when they were read. */
    apr_array_header_t *host_addresses;
    apr_pool_t *host_pool;
    apr_time_t host_read_at;
};

void agent_delivery_init(agent_delivery_table_t *table,
                         agent_context_t *context, agent_poll_t *poll);

/* Whether nothing is being sent and all outcomes are saved. */
bool agent_delivery_is_idle(const agent_delivery_table_t *table);

/* Time limit of an attempt. */
apr_interval_time_t agent_delivery_timeout(const agent_delivery_table_t *table);

/* Finds a delivery in a ring, of any deployment if deployment_id is NULL.
 * Returns NULL when there is none. */
agent_delivery_t *agent_delivery_find(agent_delivery_ring_t *ring,
                                      const char *run_id,
                                      const char *deployment_id);

/* Adds a delivery to those that are being sent. */
void agent_delivery_add(agent_delivery_t *delivery);

/* Moves a delivery to the ended ones, with the outcome that is to be saved. */
void agent_delivery_end(agent_delivery_t *delivery,
                        const agent_webhook_response_t *response);

/* Ends the transfer of a delivery and closes its connection, if it has one. */
void agent_delivery_disconnect(agent_delivery_t *delivery);

/* Free one delivery, or all of a ring. */
void agent_delivery_free(agent_delivery_t *delivery);
void agent_delivery_free_all(agent_delivery_ring_t *ring);

/* Frees the deliveries that are being sent: they are due again once this worker
 * is deregistered. */
void agent_delivery_abort(agent_delivery_table_t *table);

#endif
