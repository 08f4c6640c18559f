/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a 401 may show AuthName; see realm.h. */
#include "realm.h"

#include <string.h>

#include <http_core.h>

#include "../config/location.h"
#include "../private.h"

const char *agent_realm_of(request_rec *r)
{
    const char *name = ap_auth_name(r);

    return name != NULL && r->uri != NULL
            && strstr(r->uri, AGENT_DEPLOYMENTS_PATH) != NULL
            && agent_location_host_has_handler(r, AGENT_PLATFORM_HANDLER)
        ? NULL
        : name;
}
