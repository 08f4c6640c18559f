/* SPDX-License-Identifier: Apache-2.0 */
/* Slots for requests that wait for the rest of their bodies. */
#include "body_slot.h"

#include <sys/socket.h>

#include <apr_hash.h>
#include <apr_ring.h>
#include <apr_strings.h>

#include "../core/allocator.h"
#include "../core/lock.h"
#include "client_address.h"

/* The slots of one deployment. */
typedef struct holder_t {
    int held;
    agent_client_addresses_t addresses;
} holder_t;

struct agent_body_slot_t {
    APR_RING_ENTRY(agent_body_slot_t) link;
    agent_body_slots_t *slots;
    /* Under the lock: */
    holder_t *holder;
    agent_client_address_t *address;
    /* Borrowed while the slot is held. */
    const agent_client_socket_t *client;
    bool is_held;
    bool is_lost;
};

APR_RING_HEAD(slot_ring_t, agent_body_slot_t);

struct agent_body_slots_t {
    agent_lock_t *lock;
    /* Under the lock: */
    struct slot_ring_t ring; /* silent for longest first */
    int free;
    /* deployment -> holder_t, once the deployment has taken a slot */
    apr_hash_t *holders;
};

apr_status_t agent_body_slots_create(agent_body_slots_t **out, int count,
                                     apr_pool_t *pool)
{
    agent_body_slots_t *slots = apr_pcalloc(pool, sizeof(*slots));

    slots->free = count;
    APR_RING_INIT(&slots->ring, agent_body_slot_t, link);
    slots->holders = apr_hash_make(agent_allocator_make_private(pool));
    *out = slots;
    return agent_lock_create(&slots->lock, pool);
}

static holder_t *find_holder_locked(agent_body_slots_t *slots,
                                    const char *deployment)
{
    holder_t *holder = apr_hash_get(slots->holders, deployment,
                                    APR_HASH_KEY_STRING);

    if (holder == NULL) {
        apr_pool_t *pool = apr_hash_pool_get(slots->holders);

        holder = apr_pcalloc(pool, sizeof(*holder));
        agent_client_addresses_init(&holder->addresses, pool);
        apr_hash_set(slots->holders, apr_pstrdup(pool, deployment),
                     APR_HASH_KEY_STRING, holder);
    }
    return holder;
}

static void remove_locked(agent_body_slot_t *slot)
{
    agent_body_slots_t *slots = slot->slots;

    APR_RING_REMOVE(slot, link);
    slot->is_held = false;
    slots->free++;
    slot->holder->held--;
    agent_client_addresses_remove(&slot->holder->addresses,
                                  slot->address->number);
}

static bool holds_more(const agent_body_slot_t *a, const agent_body_slot_t *b)
{
    return a->holder->held != b->holder->held
        ? a->holder->held > b->holder->held
        : a->address->count > b->address->count;
}

/* Of the deployment with the most slots, the slot of the address with the most
 * slots that is silent for longest. */
static agent_body_slot_t *choose_victim_locked(const agent_body_slots_t *slots)
{
    agent_body_slot_t *victim = APR_RING_FIRST(&slots->ring);
    agent_body_slot_t *slot;

    APR_RING_FOREACH(slot, &slots->ring, agent_body_slot_t, link)
    {
        if (holds_more(slot, victim)) {
            victim = slot;
        }
    }
    return victim;
}

/* The MPM, which polls the socket, sees the end of input and calls the request,
 * which then responds to its client. */
static void evict_locked(agent_body_slot_t *slot)
{
    slot->is_lost = true;
    agent_client_socket_shut_down(slot->client, SHUT_RD);
    remove_locked(slot);
}

/* Counts deployment and address before a victim is chosen: if every address has
 * one slot, the address that takes a second one loses its first. */
static void insert_locked(agent_body_slots_t *slots, agent_body_slot_t *slot,
                          apr_uint64_t address)
{
    slot->holder->held++;
    slot->address = agent_client_addresses_add(&slot->holder->addresses,
                                               address);
    if (slots->free == 0) {
        evict_locked(choose_victim_locked(slots));
    }
    slots->free--;
    slot->is_held = true;
    APR_RING_INSERT_TAIL(&slots->ring, slot, agent_body_slot_t, link);
}

agent_body_slot_t *agent_body_slot_take(agent_body_slots_t *slots,
                                        const char *deployment,
                                        apr_uint64_t address,
                                        const agent_client_socket_t *client,
                                        apr_pool_t *pool)
{
    agent_body_slot_t *slot = apr_pcalloc(pool, sizeof(*slot));

    slot->slots = slots;
    slot->client = client;
    agent_lock_take(slots->lock);
    slot->holder = find_holder_locked(slots, deployment);
    insert_locked(slots, slot, address);
    agent_lock_release(slots->lock);
    return slot;
}

void agent_body_slot_progress(agent_body_slot_t *slot)
{
    agent_body_slots_t *slots = slot->slots;

    agent_lock_take(slots->lock);
    if (slot->is_held) {
        APR_RING_REMOVE(slot, link);
        APR_RING_INSERT_TAIL(&slots->ring, slot, agent_body_slot_t, link);
    }
    agent_lock_release(slots->lock);
}

bool agent_body_slot_return(agent_body_slot_t *slot)
{
    agent_lock_take(slot->slots->lock);
    if (slot->is_held) {
        remove_locked(slot);
    }
    agent_lock_release(slot->slots->lock);
    return !slot->is_lost;
}
