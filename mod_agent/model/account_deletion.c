/* SPDX-License-Identifier: Apache-2.0 */
/* Deletions of accounts; see account.h. */
#include "account.h"

#include <string.h>

#include <apr_strings.h>
#include <openssl/crypto.h>

#include "../core/uuid.h"

static apr_status_t refuse(agent_error_t **err, apr_pool_t *pool)
{
    return agent_error_set(err, AGENT_E_INTERNAL, NULL,
                           "random bytes or SHA-256 failed", pool);
}

static const char *print_days(int days, apr_pool_t *pool)
{
    return days >= 0 ? apr_itoa(pool, days) : NULL;
}

/* Whether the token has enough characters that a random one cannot be guessed:
 * 192 bits at least. */
static bool is_token(const char *text)
{
    static const char *const chars =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-";
    size_t length = strlen(text);

    return length >= AGENT_DELETION_TOKEN_MIN
        && length <= AGENT_DELETION_TOKEN_MAX && strspn(text, chars) == length;
}

apr_status_t agent_account_check_token(const char *token, agent_error_t **err,
                                       apr_pool_t *pool)
{
    return token != NULL && is_token(token)
        ? APR_SUCCESS
        : agent_error_setf(err, AGENT_E_INVALID, pool,
                           "x-deletion-token: expected %d to %d letters, "
                           "digits, _ and -.",
                           AGENT_DELETION_TOKEN_MIN, AGENT_DELETION_TOKEN_MAX);
}

/* Repeatable: the id of the deletion is the same. */
static const agent_statement_t delete_own_account = {
    .name = "agent_delete_own_account",
    .params = 6,
    .is_repeatable = true,
    .sql = "select code, body from agent.delete_own_account($1, $2, $3, $4, "
           "$5, $6)"};

apr_status_t agent_account_delete(const char **body, agent_db_pool_t *db,
                                  const agent_account_deletion_t *deletion,
                                  agent_error_t **err, apr_pool_t *pool)
{
    char id[AGENT_UUID_SIZE];
    char text[AGENT_NEW_KEY_TOKEN_SIZE];
    const char *token = deletion->token != NULL ? deletion->token : text;
    char digest[AGENT_DIGEST_SIZE];
    const char *params[] = {deletion->key_id,
                            deletion->request,
                            id,
                            digest,
                            print_days(deletion->log_days, pool),
                            print_days(deletion->backup_days, pool)};
    const char *record;
    apr_status_t rv;

    agent_uuid_v7(id);
    if (!(deletion->token != NULL
              ? agent_new_key_digest_token(digest, token)
              : agent_new_key_make_deletion_token(text, digest))) {
        return refuse(err, pool);
    }
    rv = agent_db_pool_call(&record, db, &delete_own_account, params, err,
                            pool);
    if (rv == APR_SUCCESS) {
        *body = apr_pstrcat(pool, "{\"token\":\"", token, "\",", record + 1,
                            NULL);
    }
    OPENSSL_cleanse(text, sizeof(text));
    return rv;
}

static const agent_statement_t get_deletion = {
    .name = "agent_get_deletion",
    .params = 1,
    .is_repeatable = true,
    .sql = "select code, body from agent.get_deletion($1)"};

apr_status_t agent_account_get_deletion(const char **body, agent_db_pool_t *db,
                                        const char *token, agent_error_t **err,
                                        apr_pool_t *pool)
{
    char digest[AGENT_DIGEST_SIZE];
    const char *params[] = {digest};

    return agent_new_key_digest_token(digest, token)
        ? agent_db_pool_call(body, db, &get_deletion, params, err, pool)
        : refuse(err, pool);
}
