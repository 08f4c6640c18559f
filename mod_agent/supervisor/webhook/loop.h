/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's multi interface in the loop: libcurl names the sockets to wait for
 * and sets a timer, and is called when one of them is ready or due.
 */
#ifndef AGENT_SUPERVISOR_WEBHOOK_LOOP_H
#define AGENT_SUPERVISOR_WEBHOOK_LOOP_H

#include "delivery.h"

/* Starts to send a delivery of the table. When its URL is not permitted or
 * libcurl fails, the delivery ends at once. */
void agent_webhook_loop_send(agent_delivery_t *delivery);

/* Calls libcurl if its timer is due; returns when to call this again. */
apr_time_t agent_webhook_loop_step(agent_delivery_table_t *table);

/* Aborts the deliveries that are being sent, and frees libcurl. */
void agent_webhook_loop_close(agent_delivery_table_t *table);

#endif
