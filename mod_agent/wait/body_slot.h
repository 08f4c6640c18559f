/* SPDX-License-Identifier: Apache-2.0 */
/* Slots for requests that wait for the rest of their bodies: their number
 * limits these requests in a child. */
#ifndef AGENT_WAIT_BODY_SLOT_H
#define AGENT_WAIT_BODY_SLOT_H

#include <stdbool.h>

#include <apr_pools.h>

#include "client_socket.h"

typedef struct agent_body_slots_t agent_body_slots_t;
typedef struct agent_body_slot_t agent_body_slot_t;

/* Creates the slots of a child, in pool. count: at least 1. */
apr_status_t agent_body_slots_create(agent_body_slots_t **out, int count,
                                     apr_pool_t *pool);

/*
 * Takes a slot, in pool, for a request to a deployment, given its name, from an
 * address (agent_client_address_number()). client is borrowed until the slot is
 * returned. If all slots are taken, the deployment with the most of them loses
 * one, so that each keeps its equal part. Of that deployment's slots, it is one
 * of the address with the most slots, and of these the one whose client has
 * been silent for longest: the input of its socket is shut down, so that the
 * MPM calls its request. Only this eviction takes time linear in the slots.
 */
agent_body_slot_t *agent_body_slot_take(agent_body_slots_t *slots,
                                        const char *deployment,
                                        apr_uint64_t address,
                                        const agent_client_socket_t *client,
                                        apr_pool_t *pool);

/* Records that the client has sent data. */
void agent_body_slot_progress(agent_body_slot_t *slot);

/* Returns the slot; required before pool ends, and may be called twice. False:
 * the slot was lost to another request. */
bool agent_body_slot_return(agent_body_slot_t *slot);

#endif
