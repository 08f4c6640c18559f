/* SPDX-License-Identifier: Apache-2.0 */
/* How many waiters each client address has; see address.c. */
#ifndef AGENT_WAIT_ADDRESS_H
#define AGENT_WAIT_ADDRESS_H

#include "state.h"

void agent_wait_make_addresses(agent_waits_t *waits, apr_pool_t *pool);

/* Whether the address may have one more waiter; it has one more, one less. */
bool agent_wait_may_enter_from_locked(const agent_waits_t *waits, bool parked,
                                      apr_uint64_t address);
void agent_wait_enter_from_locked(agent_waits_t *waits, apr_uint64_t address);
void agent_wait_leave_from_locked(agent_waits_t *waits, apr_uint64_t address);

#endif
