/* SPDX-License-Identifier: Apache-2.0 */
/* Slots that deployments share; see slot_share.h. */
#include "slot_share.h"

#include <apr_strings.h>

void agent_slot_shares_init(agent_slot_shares_t *shares, int slots,
                            int deployments, apr_pool_t *pool)
{
    shares->slots = slots;
    shares->guaranteed = deployments > 1 ? slots / 2 / deployments : 0;
    shares->claimed = deployments * shares->guaranteed;
    shares->held = apr_hash_make(pool);
}

static int get_held(const agent_slot_shares_t *shares,
                    const char *deployment_id)
{
    const int *held = apr_hash_get(shares->held, deployment_id,
                                   APR_HASH_KEY_STRING);

    return held != NULL ? *held : 0;
}

bool agent_slot_shares_accept(const agent_slot_shares_t *shares,
                              const char *deployment_id)
{
    return shares->claimed < shares->slots
        || (deployment_id != NULL
            && get_held(shares, deployment_id) < shares->guaranteed);
}

void agent_slot_shares_take(agent_slot_shares_t *shares,
                            const char *deployment_id)
{
    int *held;

    if (deployment_id == NULL) {
        shares->claimed++;
        return;
    }
    held = apr_hash_get(shares->held, deployment_id, APR_HASH_KEY_STRING);
    if (held == NULL) {
        apr_pool_t *pool = apr_hash_pool_get(shares->held);

        held = apr_pcalloc(pool, sizeof(*held));
        apr_hash_set(shares->held, apr_pstrdup(pool, deployment_id),
                     APR_HASH_KEY_STRING, held);
    }
    if (*held >= shares->guaranteed) {
        shares->claimed++;
    }
    ++*held;
}

void agent_slot_shares_return(agent_slot_shares_t *shares,
                              const char *deployment_id)
{
    int *held;

    if (deployment_id == NULL) {
        shares->claimed--;
        return;
    }
    held = apr_hash_get(shares->held, deployment_id, APR_HASH_KEY_STRING);
    --*held;
    if (*held >= shares->guaranteed) {
        shares->claimed--;
    }
}
