/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and credit of a lease, for credit.c and credit_step.c only. */
#ifndef AGENT_SUPERVISOR_CREDIT_PRIVATE_H
#define AGENT_SUPERVISOR_CREDIT_PRIVATE_H

#include "credit.h"

/* Whether the lease waits with a line that goes into a dedicated batch. */
bool agent_credit_needs_room(const agent_lease_t *lease);

/* Whether the free bytes for a line of `bytes`, newline included, are reserved
 * for a waiting run: lines of up to AGENT_CREDIT_MEDIUM then share their part
 * of them. */
bool agent_credit_is_reserved(const agent_credit_queue_t *queue,
                              apr_size_t bytes);

/* Whether dedicated batches have room for a line of `bytes`. */
bool agent_credit_fits(const agent_credit_queue_t *queue, apr_size_t bytes);

/* Ends the wait of a lease, which must wait. */
void agent_credit_stop_waiting(agent_lease_t *lease);

/* Makes agent_credit_step() due at `at`, or sooner. */
void agent_credit_expect_lapse(agent_credit_queue_t *queue, apr_time_t at);

/* Starts the time after which the lease's credit lapses. */
void agent_credit_start_lapse(const agent_credit_queue_t *queue,
                              agent_lease_t *lease);

/* Grants credit of `bytes` to a lease, which must have none. */
void agent_credit_grant(agent_credit_queue_t *queue, agent_lease_t *lease,
                        apr_size_t bytes);

/* Take the lease's credit, if it has any. A credit that lapses counts, unless
 * the rest of it is less than a long line. */
void agent_credit_take_back(agent_credit_queue_t *queue, agent_lease_t *lease);
void agent_credit_lapse(agent_credit_queue_t *queue, agent_lease_t *lease);

void agent_credit_write_go(agent_lease_t *lease);

#endif
