/* SPDX-License-Identifier: Apache-2.0 */
/* Binds identities to requests; see binding.h. */
#include "binding.h"

#include <string.h>

#include <http_config.h>

#include "../core/deployment.h"

#define KEY "agent_identity"

/* In the pool, which an internal redirect shares with its request. */
typedef struct binding_t {
    const agent_identity_t *identity;
    /* The one whose key was verified. */
    const request_rec *request;
    const ap_conf_vector_t *location;
} binding_t;

void agent_binding_set(request_rec *r, const agent_identity_t *identity)
{
    binding_t *binding = apr_palloc(r->pool, sizeof(*binding));

    binding->identity = identity;
    binding->request = r;
    binding->location = r->per_dir_config;
    apr_pool_userdata_setn(binding, KEY, NULL, r->pool);
}

static const binding_t *find(const request_rec *r)
{
    void *data = NULL;

    apr_pool_userdata_get(&data, KEY, r->pool);
    return data;
}

const agent_identity_t *agent_binding_get(const request_rec *r)
{
    const ap_conf_vector_t *location = r->per_dir_config;

    for (; r != NULL; r = r->main) {
        const binding_t *binding = find(r);

        if (binding != NULL) {
            return binding->location == location ? binding->identity : NULL;
        }
    }
    return NULL;
}

const agent_identity_t *agent_binding_of_request(const request_rec *r)
{
    const binding_t *binding = find(r);

    return binding != NULL && binding->request == r ? binding->identity : NULL;
}

bool agent_binding_is_for(const agent_identity_t *identity,
                          const char *deployment, apr_pool_t *pool)
{
    const char *account_id = agent_deployment_account(deployment);

    return strcmp(identity->account_id,
                  account_id != NULL ? account_id : AGENT_ACCOUNT_ID)
        == 0
        && (identity->deployment[0] == '\0'
            || strcmp(identity->deployment,
                      agent_deployment_name(deployment, pool))
                == 0);
}
