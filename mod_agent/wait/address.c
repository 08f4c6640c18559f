/* SPDX-License-Identifier: Apache-2.0 */
/* How many waiters each client address has; see address.h. */
#include "address.h"

struct agent_wait_address_t {
    apr_uint64_t address;
    int count;
    /* Of the free ones. */
    struct agent_wait_address_t *next;
};

typedef struct agent_wait_address_t address_t;

void agent_wait_make_addresses(agent_waits_t *waits, apr_pool_t *pool)
{
    waits->by_address = apr_hash_make(pool);
    waits->free_address = NULL;
}

static address_t *find_locked(const agent_waits_t *waits, apr_uint64_t address)
{
    return apr_hash_get(waits->by_address, &address, sizeof(address));
}

bool agent_wait_may_enter_from_locked(const agent_waits_t *waits, bool parked,
                                      apr_uint64_t address)
{
    int most = parked ? waits->parked_per_address : waits->blocked_per_address;
    const address_t *found = find_locked(waits, address);

    return most == 0 || found == NULL || found->count < most;
}

/* There are never more than waiters at one time: freed ones are used again. */
static address_t *make_locked(agent_waits_t *waits, apr_uint64_t address)
{
    address_t *made = waits->free_address;

    if (made != NULL) {
        waits->free_address = made->next;
    }
    else {
        made = apr_palloc(apr_hash_pool_get(waits->by_address), sizeof(*made));
    }
    made->address = address;
    made->count = 0;
    apr_hash_set(waits->by_address, &made->address, sizeof(made->address),
                 made);
    return made;
}

void agent_wait_enter_from_locked(agent_waits_t *waits, apr_uint64_t address)
{
    address_t *found = find_locked(waits, address);

    if (found == NULL) {
        found = make_locked(waits, address);
    }
    found->count++;
}

void agent_wait_leave_from_locked(agent_waits_t *waits, apr_uint64_t address)
{
    address_t *found = find_locked(waits, address);

    if (--found->count == 0) {
        apr_hash_set(waits->by_address, &found->address, sizeof(found->address),
                     NULL);
        found->next = waits->free_address;
        waits->free_address = found;
    }
}
