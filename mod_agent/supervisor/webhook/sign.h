/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of webhooks (standardwebhooks.com). */
#ifndef AGENT_SUPERVISOR_WEBHOOK_SIGN_H
#define AGENT_SUPERVISOR_WEBHOOK_SIGN_H

#include <apr_pools.h>

/* The signed text: "id.timestamp.body". */
typedef struct agent_webhook_message_t {
    const char *id;
    /* Seconds since 1970. */
    const char *timestamp;
    const char *body;
    apr_size_t length;
} agent_webhook_message_t;

/*
 * The value of the header webhook-signature, in pool: "v1," and base64 of
 * HMAC-SHA256. NULL when OpenSSL cannot compute it. length: bytes of the key.
 */
const char *agent_webhook_sign(const agent_webhook_message_t *message,
                               const unsigned char *key, apr_size_t length,
                               apr_pool_t *pool);

#endif
