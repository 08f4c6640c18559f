/* SPDX-License-Identifier: Apache-2.0 */
/* An API key as the database has it. */
#ifndef AGENT_MODEL_KEY_RECORD_H
#define AGENT_MODEL_KEY_RECORD_H

#include <stdbool.h>

#include "../core/identity.h"

typedef struct agent_key_record_t {
    unsigned char digest[AGENT_API_KEY_DIGEST_BYTES];
    /* Its key_id is set by agent_stored_key_find(). */
    agent_identity_t identity;
    /* The region of its account. */
    char region[AGENT_API_KEY_REGION_MAX + 1];
    /* The use of the key in this hour is recorded already. */
    bool is_use_recorded;
} agent_key_record_t;

/*
 * Reads the object of agent.find_api_key(); the identity's user is in pool.
 * begun_at: when the query began, of the monotonic clock. False: a member is
 * absent or has another type. null grants more than a value does, so an absent
 * member is never read as null.
 */
bool agent_key_record_read(agent_key_record_t *out, const char *body,
                           apr_time_t begun_at, apr_pool_t *pool);

#endif
