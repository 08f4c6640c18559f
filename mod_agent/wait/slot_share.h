/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots that deployments share: half of them are guaranteed, in equal parts,
 * and any deployment may take the others. A deployment that takes all it can
 * get leaves the parts of the others free. A request without a deployment
 * (NULL) takes a slot that is not guaranteed. The caller locks.
 */
#ifndef AGENT_WAIT_SLOT_SHARE_H
#define AGENT_WAIT_SLOT_SHARE_H

#include <stdbool.h>

#include <apr_hash.h>

typedef struct agent_slot_shares_t {
    int slots;
    /* Slots guaranteed to each deployment. */
    int guaranteed;
    /* The sum over all deployments of the slots that they hold or that are
     * guaranteed, whichever is more. */
    int claimed;
    /* deployment_id -> int, once the deployment has taken a slot */
    apr_hash_t *held;
} agent_slot_shares_t;

/* Initializes the shares of `deployments`; for one there is nothing to
 * guarantee. pool: for an entry of each deployment. */
void agent_slot_shares_init(agent_slot_shares_t *shares, int slots,
                            int deployments, apr_pool_t *pool);

/* Whether the deployment may take one more. */
bool agent_slot_shares_accept(const agent_slot_shares_t *shares,
                              const char *deployment_id);

/* Takes a slot, and gives one back. */
void agent_slot_shares_take(agent_slot_shares_t *shares,
                            const char *deployment_id);
void agent_slot_shares_return(agent_slot_shares_t *shares,
                              const char *deployment_id);

#endif
