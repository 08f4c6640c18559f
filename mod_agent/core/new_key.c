/* SPDX-License-Identifier: Apache-2.0 */
/* New API keys and invitations; see new_key.h. */
#include "new_key.h"

#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <openssl/crypto.h>

#include "raw.h"

#define INVITATION "inv1_"
#define DELETION   "del1_"

static bool print_digest(char out[AGENT_DIGEST_SIZE], const char *text,
                         size_t length)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[AGENT_API_KEY_DIGEST_BYTES];

    if (!agent_api_key_digest(digest, text, length)) {
        return false;
    }
    memcpy(out, "\\x", 2);
    for (int i = 0; i < AGENT_API_KEY_DIGEST_BYTES; i++) {
        out[2 + 2 * i] = digits[digest[i] >> 4];
        out[3 + 2 * i] = digits[digest[i] & 15];
    }
    out[AGENT_DIGEST_SIZE - 1] = '\0';
    return true;
}

/* Draws the random numbers. *parsed: the parts of a key's text with these
 * numbers; its region and kind do not matter. */
static bool draw(agent_new_key_t *out, agent_api_key_t *parsed,
                 char text[AGENT_API_KEY_SIZE])
{
    return apr_generate_random_bytes(out->id, sizeof(out->id)) == APR_SUCCESS
        && apr_generate_random_bytes(out->secret, sizeof(out->secret))
        == APR_SUCCESS
        && agent_api_key_format(text, "local", AGENT_API_KEY_SERVICE, out->id,
                                out->secret)
        && agent_api_key_parse(parsed, text) == AGENT_API_KEY_OK;
}

bool agent_new_key_make(agent_new_key_t *out)
{
    char text[AGENT_API_KEY_SIZE];
    agent_api_key_t parsed;
    bool is_made = draw(out, &parsed, text)
        && print_digest(out->digest, parsed.secret, AGENT_API_KEY_SECRET_CHARS);

    if (is_made) {
        memcpy(out->id_text, parsed.id, sizeof(out->id_text));
    }
    OPENSSL_cleanse(text, sizeof(text));
    return is_made;
}

const char *agent_new_key_show(const agent_new_key_t *key, const char *record,
                               apr_pool_t *pool)
{
    agent_raw_t object = agent_raw_read(record);
    const char *region = agent_raw_string(agent_raw_get(object, "region"),
                                          pool);
    const char *word = agent_raw_string(agent_raw_get(object, "kind"), pool);
    char text[AGENT_API_KEY_SIZE];
    agent_api_key_kind_t kind;
    const char *shown = NULL;

    if (region != NULL && word != NULL && agent_api_key_read_kind(&kind, word)
        && agent_api_key_format(text, region, kind, key->id, key->secret)) {
        shown = apr_pstrcat(pool, "{\"key\":\"", text, "\",", object.text + 1,
                            NULL);
    }
    OPENSSL_cleanse(text, sizeof(text));
    return shown;
}

/* prefix: as long as INVITATION. */
static bool make_text(char text[AGENT_NEW_KEY_TOKEN_SIZE],
                      char digest[AGENT_DIGEST_SIZE], const char *prefix)
{
    char key_text[AGENT_API_KEY_SIZE];
    agent_new_key_t key;
    agent_api_key_t parsed;
    bool is_made = draw(&key, &parsed, key_text);

    if (is_made) {
        memcpy(text, prefix, strlen(prefix));
        memcpy(text + strlen(prefix), parsed.secret,
               AGENT_API_KEY_SECRET_CHARS);
        text[AGENT_NEW_KEY_TOKEN_SIZE - 1] = '\0';
    }
    OPENSSL_cleanse(key_text, sizeof(key_text));
    OPENSSL_cleanse(&key, sizeof(key));
    return is_made && agent_new_key_digest_token(digest, text);
}

bool agent_new_key_make_invitation(char text[AGENT_NEW_KEY_TOKEN_SIZE],
                                   char digest[AGENT_DIGEST_SIZE])
{
    return make_text(text, digest, INVITATION);
}

bool agent_new_key_is_invitation(const char *text)
{
    return strlen(text) == AGENT_NEW_KEY_TOKEN_SIZE - 1
        && strncmp(text, INVITATION, strlen(INVITATION)) == 0;
}

bool agent_new_key_make_deletion_token(char text[AGENT_NEW_KEY_TOKEN_SIZE],
                                       char digest[AGENT_DIGEST_SIZE])
{
    return make_text(text, digest, DELETION);
}

bool agent_new_key_digest_token(char digest[AGENT_DIGEST_SIZE],
                                const char *text)
{
    return print_digest(digest, text, strlen(text));
}
