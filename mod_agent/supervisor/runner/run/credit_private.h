/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and credit of a lease, for credit.c and credit_step.c only. */
#ifndef AGENT_SUPERVISOR_CREDIT_PRIVATE_H
#define AGENT_SUPERVISOR_CREDIT_PRIVATE_H

#include "credit.h"

/* Whether it waits with a line that goes into a dedicated batch. */
bool agent_credit_needs_room(const agent_lease_t *lease);

/* Whether the free bytes for a line of `bytes`, newline included, are reserved
 * for a waiting run: lines of up to AGENT_CREDIT_MEDIUM then share their part
 * of them. */
bool agent_credit_is_reserved(const agent_credit_queue_t *queue,
                              apr_size_t bytes);

/* Whether dedicated batches have room for such a line. */
bool agent_credit_fits(const agent_credit_queue_t *queue, apr_size_t bytes);

/* The lease must wait. */
void agent_credit_stop_waiting(agent_lease_t *lease);

/* agent_credit_step() is to be called at that time, or sooner. */
void agent_credit_expect_lapse(agent_credit_queue_t *queue, apr_time_t at);

/* The time after which the lease's credit lapses begins now. */
void agent_credit_start_lapse(const agent_credit_queue_t *queue,
                              agent_lease_t *lease);

/* The lease must have no credit. */
void agent_credit_grant(agent_credit_queue_t *queue, agent_lease_t *lease,
                        apr_size_t bytes);

/* Both take the lease's credit, if it has any; one that lapses counts, unless
 * what is left of it is less than a long line. */
void agent_credit_take_back(agent_credit_queue_t *queue, agent_lease_t *lease);
void agent_credit_lapse(agent_credit_queue_t *queue, agent_lease_t *lease);

void agent_credit_write_go(agent_lease_t *lease);

#endif
