/* SPDX-License-Identifier: Apache-2.0 */
/* Calls as arguments of EVALSHA, and replies of the script. */
#ifndef RLR_WIRE_H
#define RLR_WIRE_H

#include <stddef.h>

#include <apr_pools.h>

#include "../protocol/message.h"

typedef struct rlr_wire_command_t {
    int count;
    const char **texts;
    size_t *lengths;
} rlr_wire_command_t;

/* The script, protocol/grant.lua. */
extern const char rlr_wire_script[];

/* Encodes the call to a partition, in pool; sha is the script's. */
void rlr_wire_encode(rlr_wire_command_t *command,
                     const rlr_message_call_t *call, uint32_t partition,
                     const char *sha, apr_pool_t *pool);

/* Reads a reply of hiredis (redisReply). reply->grants has room for all items,
 * and reply->rules is NULL but for RLR_MESSAGE_READ.
 * Sets RLR_MESSAGE_FAILED if it is anything else; *error is then its text, or
 * NULL. */
void rlr_wire_decode(rlr_message_reply_t *reply, uint32_t item_count,
                     const void *redis_reply, const char **error);

#endif
