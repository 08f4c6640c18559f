/* SPDX-License-Identifier: Apache-2.0 */
/* New API keys, invitations and deletion tokens: their random numbers, and what
 * PostgreSQL stores of them. The texts are secret, the digests are not. */
#ifndef AGENT_CORE_NEW_KEY_H
#define AGENT_CORE_NEW_KEY_H

#include <apr_pools.h>

#include "api_key.h"

/* A digest as a bytea of PostgreSQL. */
#define AGENT_DIGEST_SIZE (2 + 2 * AGENT_API_KEY_DIGEST_BYTES + 1)

/* A key with everything but its region and kind, which the database knows. */
typedef struct agent_new_key_t {
    unsigned char id[AGENT_API_KEY_ID_BYTES];
    unsigned char secret[AGENT_API_KEY_SECRET_BYTES];
    /* For the database: the key ID, and the digest of the secret. */
    char id_text[AGENT_API_KEY_ID_CHARS + 1];
    char digest[AGENT_DIGEST_SIZE];
} agent_new_key_t;

/* Makes a key. False: there are no random bytes, or no SHA-256. */
bool agent_new_key_make(agent_new_key_t *out);

/*
 * Returns the record that the database has made of the key, a JSON object with
 * the members region and kind, with the text of the key as its member `key`; in
 * pool. NULL: it is not such a record.
 */
const char *agent_new_key_show(const agent_new_key_t *key, const char *record,
                               apr_pool_t *pool);

/* The text of an invitation or a deletion token, with its NUL: `inv1_` or
 * `del1_`, and 256 random bits in base 62. */
#define AGENT_NEW_KEY_TOKEN_SIZE (5 + AGENT_API_KEY_SECRET_CHARS + 1)

/* Makes an invitation. False: as above. */
bool agent_new_key_make_invitation(char text[AGENT_NEW_KEY_TOKEN_SIZE],
                                   char digest[AGENT_DIGEST_SIZE]);

/* Whether a text has the length and the beginning of an invitation. */
bool agent_new_key_is_invitation(const char *text);

/* Makes a deletion token in the same way, which gives access to the record of
 * the deletion of an account. */
bool agent_new_key_make_deletion_token(char text[AGENT_NEW_KEY_TOKEN_SIZE],
                                       char digest[AGENT_DIGEST_SIZE]);

/* Writes the digest of any text that may be one of these. False: there is no
 * SHA-256. */
bool agent_new_key_digest_token(char digest[AGENT_DIGEST_SIZE],
                                const char *text);

#endif
