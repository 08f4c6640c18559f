/* SPDX-License-Identifier: Apache-2.0 */
/* `Require not agent-...`, and <RequireNone> with agent-... in it: who may not
 * use a location. */
#ifndef AGENT_CONFIG_EXCLUSION_H
#define AGENT_CONFIG_EXCLUSION_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

/* How the provider of a line is used. */
typedef struct agent_exclusion_t {
    /* Its grant admits no request, and its denial leaves a request to other
     * lines: `Require not`, or a line of a <RequireNone>. */
    bool is_exclusion;
    /* No line beside it, or around it, demands a user. */
    bool is_alone;
} agent_exclusion_t;

/*
 * Returns how the provider is used by a Require, for use while this directive
 * is processed; by an <AuthzProviderAlias> as without `not`. pool:
 * cmd_parms.temp_pool, which keeps what is read of httpd.conf for the next
 * call.
 */
agent_exclusion_t agent_exclusion_read(const ap_directive_t *directive,
                                       apr_pool_t *pool);

/*
 * Returns an error, in pool, of a line of httpd.conf that excludes keys by an
 * <AuthzProviderAlias>; NULL if there is none. httpd does not tell a provider
 * which line names its alias, nor that the line has `not`.
 */
const char *agent_exclusion_check(apr_pool_t *pool);

/*
 * Warns of exclusions without a line beside them, or around them, that demands
 * a key, or with `AuthType AgentKey` a user: httpd asks for credentials only if
 * it denies a request without them, which an exclusion never does, and a user
 * of a password has no account. So it would exclude nobody whom the other lines
 * admit; where nothing demands a user and no key is read, it excludes everybody
 * without one (../auth/require.c). Lines that AuthMerging adds are not known.
 */
void agent_exclusion_warn(server_rec *server, apr_pool_t *pool);

#endif
