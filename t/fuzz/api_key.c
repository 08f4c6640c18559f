/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/api_key.c */
/* API keys of a header: an accepted text has the published form, and its parts
 * are those of the text. */
#include "fuzz.h"

#include <string.h>

#include "../../mod_agent/core/api_key.h"

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    agent_api_key_t key;
    const char *word;
    agent_api_key_kind_t kind;

    if (agent_api_key_parse(&key, text) != AGENT_API_KEY_OK) {
        return;
    }
    must(strlen(text) < AGENT_API_KEY_SIZE);
    must(agent_api_key_is_region(key.region));
    word = agent_api_key_kind_word(key.kind);
    must(agent_api_key_read_kind(&kind, word) && kind == key.kind);
    must(strncmp(text, apr_pstrcat(pool, "ag1_", key.region, "_", NULL),
                 strlen(key.region) + 5)
         == 0);
    must(strlen(key.id) == AGENT_API_KEY_ID_CHARS);
    must(strncmp(key.secret - AGENT_API_KEY_ID_CHARS - 1, key.id,
                 AGENT_API_KEY_ID_CHARS)
         == 0);
    must(key.secret + AGENT_API_KEY_SECRET_CHARS + 7 == text + strlen(text));
}
