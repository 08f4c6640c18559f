/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of webhooks. */
#ifndef AGENT_SUPERVISOR_WEBHOOK_CONFIG_H
#define AGENT_SUPERVISOR_WEBHOOK_CONFIG_H

#include <stdbool.h>

#include <apr_time.h>

#include "../../core/egress.h"

/* A key that signs deliveries. */
typedef struct agent_webhook_key_t {
    /* The name of its deployment; NULL: all that have no key of their own. */
    const char *deployment;
    const unsigned char *bytes;
    apr_size_t length;
} agent_webhook_key_t;

/* A header of deliveries. */
typedef struct agent_webhook_header_text_t {
    /* The name of its deployment; NULL: all that have none of their own. */
    const char *deployment;
    const char *name;
    const char *value;
} agent_webhook_header_text_t;

/* Delivery of webhooks; zeroed: none. */
typedef struct agent_webhook_config_t {
    bool is_on;
    /* Permitted addresses. */
    const agent_egress_t *egress;
    /* Deliveries of a deployment without a key are not signed. */
    const agent_webhook_key_t *keys;
    int key_count;
    const agent_webhook_header_text_t *headers;
    int header_count;
    /* Longest attempt; 0: 10 s. */
    apr_interval_time_t timeout;
    /* NULL: mod_agent. */
    const char *user_agent;
} agent_webhook_config_t;

#endif
