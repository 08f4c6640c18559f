/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Webhooks: what agent.webhook_outbox holds is claimed, sent by libcurl in the
 * supervisor's own loop, and its end saved. A delivery that nobody saves
 * belongs to nobody after its lease, so none is lost with this process.
 */
#ifndef AGENT_SUPERVISOR_WEBHOOK_H
#define AGENT_SUPERVISOR_WEBHOOK_H

#include <stdbool.h>

#include <curl/curl.h>

#include "../../core/egress.h"
#include "../../core/uuid.h"
#include "../statement/database.h"
#include "../ring.h"
#include "outcome.h"

/* Deliveries at once, those included whose end is not saved yet, and what
 * their bodies may sum up to when another one is claimed. */
#define AGENT_WEBHOOK_SLOTS     64
#define AGENT_WEBHOOK_MAX_BYTES ((apr_size_t)16 * 1024 * 1024)
/* For each: two connections that race (IPv6, IPv4), and one look-up. */
#define AGENT_WEBHOOK_SOCKETS (3 * AGENT_WEBHOOK_SLOTS)

typedef struct agent_delivery_t {
    APR_RING_ENTRY(agent_delivery_t) link;
    agent_supervisor_t *sv;
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
    /* Of head and body of the answer. */
    apr_size_t answer_bytes;
    /* An address that may not be called was among those of its host. */
    const char *denied;
    bool has_connected;
    /* When it has ended; is_sent: the database is being told. */
    agent_webhook_verdict_t verdict;
    bool is_sent;
} agent_delivery_t;

APR_RING_HEAD(agent_delivery_ring_t, agent_delivery_t);
typedef struct agent_delivery_ring_t agent_delivery_ring_t;

/* A descriptor that libcurl waits for; -1: unused. */
typedef struct agent_webhook_socket_t {
    int fd;
    short events;
} agent_webhook_socket_t;

typedef struct agent_webhook_table_t {
    agent_delivery_ring_t sending;
    agent_delivery_ring_t ended;
    int count;
    apr_size_t bytes;
    /* Made for the first delivery. */
    CURLM *multi;
    agent_webhook_socket_t sockets[AGENT_WEBHOOK_SOCKETS];
    /* When libcurl wants to be called. */
    apr_time_t timer_at;
    apr_time_t claim_at;
    apr_time_t claimed_at;
    int claim_limit;
    apr_time_t save_at;
    apr_time_t sweep_at;
    /* This host's addresses, and when they were asked for. */
    apr_array_header_t *own;
    apr_pool_t *own_pool;
    apr_time_t own_at;
} agent_webhook_table_t;

extern const agent_operation_t agent_webhook_claim_operation;
extern const agent_operation_t agent_webhook_save_operation;
extern const agent_operation_t agent_webhook_sweep_operation;

void agent_webhook_init(agent_supervisor_t *sv);

/* A run has ended: perhaps there is something to deliver. */
void agent_webhook_hint(agent_supervisor_t *sv);

/* Nothing is being sent, and all ends are saved. */
bool agent_webhook_is_idle(const agent_supervisor_t *sv);

/* Gives up what is being sent: the burial of this worker makes it due. */
void agent_webhook_abort(agent_supervisor_t *sv);

/* Does what libcurl's clock asks for; returns when to be called again. */
apr_time_t agent_webhook_step(agent_supervisor_t *sv);

/* Adds what libcurl waits for to the poll set. */
void agent_webhook_poll(agent_supervisor_t *sv);

/* Ends libcurl. */
void agent_webhook_close(agent_supervisor_t *sv);

/* Longest attempt. */
apr_interval_time_t agent_webhook_timeout(const agent_supervisor_t *sv);

/* For webhook.c: begins to send; it ends at once when that is impossible. */
void agent_webhook_send(agent_delivery_t *delivery);
/* For webhook_send.c: it has ended. */
void agent_webhook_end(agent_delivery_t *delivery,
                       const agent_webhook_answer_t *answer);
/* For webhook_loop.c: libcurl is done with it. */
void agent_webhook_finish(agent_delivery_t *delivery, CURLcode code);
/* For webhook_send.c and webhook.c: drops the connection, if there is one. */
void agent_webhook_drop(agent_delivery_t *delivery);
/* For webhook_send.c: gives it to libcurl; false when libcurl cannot start. */
bool agent_webhook_loop_add(agent_delivery_t *delivery);

#endif
