/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a request's headers has its API key. */
#ifndef AGENT_AUTH_CREDENTIAL_H
#define AGENT_AUTH_CREDENTIAL_H

typedef enum agent_credential_t {
    AGENT_CREDENTIAL_NONE,
    AGENT_CREDENTIAL_FOUND,
    /* Empty, sent twice, or too long for a key. */
    AGENT_CREDENTIAL_INVALID,
    /* Both headers have one, and they differ. */
    AGENT_CREDENTIAL_CONFLICT
} agent_credential_t;

/*
 * Sets *key with AGENT_CREDENTIAL_FOUND, borrowed from one of the headers, each
 * NULL if it is absent. x-api-key takes precedence, also for the limiter: a
 * Bearer token beside it must be equal, and alone it is the key. Other schemes
 * of Authorization are ignored.
 */
agent_credential_t agent_credential_choose(const char **key,
                                           const char *api_key,
                                           const char *authorization);

#endif
