/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a child that wait for the rest of their bodies: a fixed
 * number of slots. */
#ifndef AGENT_WAIT_BODY_SLOT_H
#define AGENT_WAIT_BODY_SLOT_H

#include <stdbool.h>

#include <apr_pools.h>

#include "client_socket.h"

typedef struct agent_body_slots_t agent_body_slots_t;
typedef struct agent_body_slot_t agent_body_slot_t;

/* Of one child, in pool. count: at least 1. */
apr_status_t agent_body_slots_create(agent_body_slots_t **out, int count,
                                     apr_pool_t *pool);

/*
 * A slot, in pool, for a request from a client address
 * (agent_address_number()). client: borrowed until the slot is
 * returned. When all slots are taken, the address with the most of them loses
 * one: that of its client which has sent nothing for longest. The input of that
 * client's socket is shut down, which makes the MPM call its request. Takes
 * time linear in the slots only then.
 */
agent_body_slot_t *agent_body_slot_take(agent_body_slots_t *slots,
                                        apr_uint64_t address,
                                        const agent_client_socket_t *client,
                                        apr_pool_t *pool);

/* Its client has sent something. */
void agent_body_slot_progress(agent_body_slot_t *slot);

/* False when the slot was lost. May be called twice; due before pool ends. */
bool agent_body_slot_return(agent_body_slot_t *slot);

#endif
