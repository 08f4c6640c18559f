/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of webhooks; see sign.h. */
#include "sign.h"

#include <stdbool.h>
#include <string.h>

#include <apr_encode.h>
#include <apr_strings.h>
#include <openssl/evp.h>

static bool add_text(EVP_MD_CTX *context, const char *text)
{
    return EVP_DigestSignUpdate(context, text, strlen(text)) == 1;
}

/* Hashes the parts one by one, so that a large body is not copied. */
static bool compute(unsigned char *mac, size_t *size,
                    const agent_webhook_message_t *message, EVP_MD_CTX *context,
                    EVP_PKEY *key)
{
    return EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1
        && add_text(context, message->id) && add_text(context, ".")
        && add_text(context, message->timestamp) && add_text(context, ".")
        && EVP_DigestSignUpdate(context, message->body, message->length) == 1
        && EVP_DigestSignFinal(context, mac, size) == 1;
}

const char *agent_webhook_sign(const agent_webhook_message_t *message,
                               const unsigned char *key, apr_size_t length,
                               apr_pool_t *pool)
{
    EVP_PKEY *hmac_key = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, key,
                                                      length);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char mac[EVP_MAX_MD_SIZE];
    size_t size = sizeof(mac);
    const char *signature = NULL;

    if (hmac_key != NULL && context != NULL
        && compute(mac, &size, message, context, hmac_key)) {
        signature = apr_pstrcat(
            pool, "v1,",
            apr_pencode_base64_binary(pool, mac, (apr_ssize_t)size,
                                      APR_ENCODE_NONE, NULL),
            NULL);
    }
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(hmac_key);
    return signature;
}
