/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/uuid.c */
/* UUIDs of a path: one spelling, which a second reading does not change. */
#include "fuzz.h"

#include <string.h>

#include <apr_lib.h>

#include "../../mod_agent/core/uuid.h"

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    char first[AGENT_UUID_SIZE];
    char second[AGENT_UUID_SIZE];

    if (!agent_uuid_parse(first, text)) {
        return;
    }
    must(strlen(text) == AGENT_UUID_SIZE - 1);
    for (int i = 0; i < AGENT_UUID_SIZE - 1; i++) {
        must(apr_tolower(text[i]) == first[i]);
        must(first[i] == '-' || apr_isxdigit(first[i]));
    }
    must(agent_uuid_parse(second, first) && strcmp(first, second) == 0);
}
