/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API keys, as text: `ag1_REGION_KIND_ID_SECRET_CHECKSUM`, for example
 * `ag1_eu_sk_` + 22 + `_` + 43 + `_` + 6 characters. KIND is sk (service), pt
 * (personal) or dk (deployment). ID is a number of 128 bits, SECRET one of 256,
 * and CHECKSUM the CRC-32 of everything before its underscore, all in base 62
 * (0-9A-Za-z) with leading zeros. A scanner for secrets finds keys by
 *
 *   ag1_[a-z][a-z0-9-]{0,15}_(sk|pt|dk)_[0-9A-Za-z]{22}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}
 *
 * A key has exactly one text, since a number of more bits is refused. Only the
 * digest of a secret is stored, or sent to PostgreSQL.
 */
#ifndef AGENT_CORE_API_KEY_H
#define AGENT_CORE_API_KEY_H

#include <stdbool.h>
#include <stddef.h>

/* Characters of the parts. */
#define AGENT_API_KEY_REGION_MAX   16
#define AGENT_API_KEY_ID_CHARS     22
#define AGENT_API_KEY_SECRET_CHARS 43
/* Size of the longest key, with the terminating NUL. */
#define AGENT_API_KEY_SIZE 98

/* The numbers, and SHA-256, in bytes. */
#define AGENT_API_KEY_ID_BYTES     16
#define AGENT_API_KEY_SECRET_BYTES 32
#define AGENT_API_KEY_DIGEST_BYTES 32

typedef enum agent_api_key_kind_t {
    AGENT_API_KEY_SERVICE = 1,
    AGENT_API_KEY_PERSONAL,
    AGENT_API_KEY_DEPLOYMENT
} agent_api_key_kind_t;

typedef enum agent_api_key_result_t {
    AGENT_API_KEY_OK,
    /* Not in the form of a key, or with a number that is too large. */
    AGENT_API_KEY_MALFORMED,
    /* In the form of a key, but with a wrong checksum: it was mistyped. */
    AGENT_API_KEY_CHECKSUM
} agent_api_key_result_t;

typedef struct agent_api_key_t {
    char region[AGENT_API_KEY_REGION_MAX + 1];
    agent_api_key_kind_t kind;
    /* Identifies the key and is not secret. */
    char id[AGENT_API_KEY_ID_CHARS + 1];
    /* AGENT_API_KEY_SECRET_CHARS characters of the text that was read, without
     * a NUL after them. */
    const char *secret;
} agent_api_key_t;

/* Parses a key; reads at most AGENT_API_KEY_SIZE characters of text. *out is
 * only set by AGENT_API_KEY_OK. */
agent_api_key_result_t agent_api_key_parse(agent_api_key_t *out,
                                           const char *text);

/*
 * Writes the text of a key, from random bytes of the caller. False: region is
 * not a region's name.
 */
bool agent_api_key_format(
    char out[AGENT_API_KEY_SIZE], const char *region, agent_api_key_kind_t kind,
    const unsigned char id[AGENT_API_KEY_ID_BYTES],
    const unsigned char secret[AGENT_API_KEY_SECRET_BYTES]);

/* Whether text is a region's name: `[a-z][a-z0-9-]{0,15}`. */
bool agent_api_key_is_region(const char *text);

/* Whether a text begins as the keys of a region do; the rest is not checked. */
bool agent_api_key_begins_with(const char *text, const char *region);

/*
 * Writes the SHA-256 of the characters of a secret, as PostgreSQL stores it.
 * False: libcrypto cannot compute it.
 */
bool agent_api_key_digest(unsigned char out[AGENT_API_KEY_DIGEST_BYTES],
                          const char *text, size_t length);

/* Whether two digests are equal; takes the same time whether they are or not.
 */
bool agent_api_key_is_digest(const unsigned char a[AGENT_API_KEY_DIGEST_BYTES],
                             const unsigned char b[AGENT_API_KEY_DIGEST_BYTES]);

/* Returns the kind as PostgreSQL stores it, "service" for example; constant. */
const char *agent_api_key_kind_word(agent_api_key_kind_t kind);

/* Parses such a word. False: any other text. */
bool agent_api_key_read_kind(agent_api_key_kind_t *out, const char *word);

#endif
