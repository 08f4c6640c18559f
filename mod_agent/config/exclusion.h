/* SPDX-License-Identifier: Apache-2.0 */
/* `Require not agent-...`, and agent-... in a <RequireNone>: lines that exclude
 * keys from a location. */
#ifndef AGENT_CONFIG_EXCLUSION_H
#define AGENT_CONFIG_EXCLUSION_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

/* How the provider of a line is used. */
typedef struct agent_exclusion_t {
    /* The line is `Require not`, or in a <RequireNone>: if the provider grants,
     * the line admits nothing, and if it denies, other lines decide. */
    bool is_exclusion;
    /* Neither the other lines of the section nor those of the sections around
     * it demand a user. */
    bool lacks_demand;
} agent_exclusion_t;

/*
 * Returns how a Require uses its provider; to be called while this directive is
 * processed. An <AuthzProviderAlias> counts as a line without `not`. pool:
 * cmd_parms.temp_pool, which caches what was read of httpd.conf for the next
 * call.
 */
agent_exclusion_t agent_exclusion_read(const ap_directive_t *directive,
                                       apr_pool_t *pool);

/*
 * Returns an error message, in pool, if a line of httpd.conf excludes keys by
 * an <AuthzProviderAlias>; else NULL. This cannot work: httpd does not tell a
 * provider which line names its alias, nor that the line has `not`.
 */
const char *agent_exclusion_check(apr_pool_t *pool);

/*
 * Warns of exclusions without another line, in their section or around it, that
 * demands a key, or with `AuthType AgentKey` a user. httpd asks for credentials
 * only after a line has denied a request without them, which an exclusion never
 * does, and a user with a password has no account. So such an exclusion has no
 * effect on requests that the other lines admit; or, where no line demands a
 * user and no key is read, it excludes all requests without a user
 * (../auth/require.c). Lines that AuthMerging adds are not known here.
 */
void agent_exclusion_warn(server_rec *server, apr_pool_t *pool);

#endif
