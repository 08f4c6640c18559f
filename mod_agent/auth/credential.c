/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses between the headers of an API key; see credential.h. httpd joins
 * repeated headers with ", ". */
#include "credential.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "../core/api_key.h"

#define SCHEME "Bearer"

/* Printable ASCII without a comma, as the limiter reads it. */
static bool is_single(const char *text)
{
    size_t length = 0;

    while (length < AGENT_API_KEY_SIZE && text[length] > ' '
           && text[length] <= '~' && text[length] != ',') {
        length++;
    }
    return length > 0 && text[length] == '\0' && length < AGENT_API_KEY_SIZE;
}

/* Returns the token of "Bearer TOKEN"; "" for an empty one; NULL for another
 * scheme. */
static const char *find_token(const char *authorization)
{
    size_t length = strlen(SCHEME);

    if (authorization == NULL || strncasecmp(authorization, SCHEME, length) != 0
        || (authorization[length] != ' ' && authorization[length] != '\0')) {
        return NULL;
    }
    return authorization + length + strspn(authorization + length, " ");
}

agent_credential_t agent_credential_choose(const char **key,
                                           const char *api_key,
                                           const char *authorization)
{
    const char *token = find_token(authorization);
    const char *chosen = api_key != NULL ? api_key : token;

    if (chosen == NULL) {
        return AGENT_CREDENTIAL_NONE;
    }
    if (!is_single(chosen)) {
        return AGENT_CREDENTIAL_INVALID;
    }
    if (token != NULL && strcmp(chosen, token) != 0) {
        return AGENT_CREDENTIAL_CONFLICT;
    }
    *key = chosen;
    return AGENT_CREDENTIAL_FOUND;
}
