/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP request of one delivery. The URL is a client's: open_socket() in
 * request.c permits or denies each address that is connected; no proxy, no
 * redirect; the body of the response is counted and discarded.
 */
#ifndef AGENT_SUPERVISOR_WEBHOOK_REQUEST_H
#define AGENT_SUPERVISOR_WEBHOOK_REQUEST_H

#include "delivery.h"

/* Why the URL is not permitted, in delivery->pool; NULL: it is. */
const char *agent_webhook_request_check(agent_delivery_t *delivery);

/* Makes delivery->easy, which agent_delivery_disconnect() frees; false when
 * libcurl cannot. */
bool agent_webhook_request_make(agent_delivery_t *delivery);

/* The transfer has ended with that code: reads its response. */
void agent_webhook_request_read(agent_webhook_response_t *response,
                                agent_delivery_t *delivery, CURLcode code);

#endif
