/* SPDX-License-Identifier: Apache-2.0 */
/* `AuthType AgentKey`: authentication by API keys, for httpd's hooks. */
#ifndef AGENT_AUTH_PROVIDER_H
#define AGENT_AUTH_PROVIDER_H

#include <stdbool.h>

#include "../http/call.h"

/* Registers the hooks; called with the module's hooks. */
void agent_provider_register(void);

/* Whether the request's location has AuthType AgentKey. */
bool agent_provider_is_chosen(request_rec *r);

/*
 * Verifies the request's key and binds its owner to the request, with r->user:
 * the user of a personal key, else the key ID. Errors: those of
 * agent_key_region_check() and agent_authenticate(); sets the headers that the
 * response needs then.
 */
apr_status_t agent_provider_identify(request_rec *r, agent_error_t **err);

/* Sets the headers of a 401: the challenge, and `Connection: close` if an
 * unread body would follow. */
void agent_provider_challenge(request_rec *r);

#endif
