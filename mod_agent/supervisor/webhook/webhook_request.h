/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP request of one delivery. The URL comes from a client: open_socket()
 * in webhook_request.c checks each address before libcurl connects to it. No
 * proxy, no redirects; the body of the response is discarded.
 */
#ifndef AGENT_SUPERVISOR_WEBHOOK_WEBHOOK_REQUEST_H
#define AGENT_SUPERVISOR_WEBHOOK_WEBHOOK_REQUEST_H

#include "delivery.h"

/* Checks the URL and sets delivery->target. Returns NULL if it is permitted,
 * else the reason, in delivery->pool. */
const char *agent_webhook_request_check(agent_delivery_t *delivery);

/* Makes delivery->easy, which agent_delivery_disconnect() frees. Returns false
 * when libcurl fails. */
bool agent_webhook_request_make(agent_delivery_t *delivery);

/* Reads the response of a transfer that ended with `code`. */
void agent_webhook_request_read(agent_webhook_response_t *response,
                                agent_delivery_t *delivery, CURLcode code);

#endif
