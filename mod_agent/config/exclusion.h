/* SPDX-License-Identifier: Apache-2.0 */
/* `Require not agent-...`, and <RequireNone> with agent-... in it: who may not
 * use a location. */
#ifndef AGENT_CONFIG_EXCLUSION_H
#define AGENT_CONFIG_EXCLUSION_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

/*
 * Warns of exclusions without a line beside them, or around them, that demands
 * a key, or with `AuthType AgentKey` a user: httpd asks for credentials only if
 * it denies a request without them, which an exclusion never does, and a user
 * of a password has no account. So it would exclude nobody; without AuthType
 * AgentKey, by which no key is read, it excludes everybody (../auth/require.c).
 */
void agent_exclusion_warn(server_rec *server, apr_pool_t *pool);

/*
 * Whether the denial by the provider of this line admits a request, or leaves
 * it to other lines: `Require not`, or a line of a <RequireNone>. Of an
 * <AuthzProviderAlias>: whether such a line of httpd.conf names it; for use
 * while httpd.conf is processed.
 */
bool agent_exclusion_is_negated(const ap_directive_t *directive,
                                apr_pool_t *pool);

#endif
