/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies to checkpoints and records of the graph library (`checkpoint`, `put`,
 * `put_writes` with `ack`) when they are committed. Few of a run may be open or
 * unread: this limits the unread input of its runner.
 */
#ifndef AGENT_SUPERVISOR_RUNNER_ACK_H
#define AGENT_SUPERVISOR_RUNNER_ACK_H

#include "../../lease/lease.h"

/* Counts a record of the run that gets a reply. Returns NULL, or the breach of
 * the protocol, a constant: AGENT_ACK_MAX are open or unread. The lease must
 * have a runner. */
const char *agent_ack_take(agent_lease_t *lease);

/* Replies to the record with the number id, which is committed, unless the
 * runner's side of the lease has ended. */
void agent_ack_reply(agent_lease_t *lease, apr_int64_t id);

#endif
