/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts; see account.h. */
#include "account.h"

#include <apr_strings.h>
#include <openssl/crypto.h>

#include "../core/uuid.h"

static const agent_statement_t describe_api_key = {
    .name = "agent_describe_api_key",
    .params = 1,
    .is_repeatable = true,
    .sql = "select code, body from agent.describe_api_key($1)"};

apr_status_t agent_account_describe_key(const char **body, agent_db_pool_t *db,
                                        const char *key_id, agent_error_t **err,
                                        apr_pool_t *pool)
{
    const char *params[] = {key_id};

    return agent_db_pool_call(body, db, &describe_api_key, params, err, pool);
}

static const agent_statement_t get_account = {
    .name = "agent_get_account",
    .params = 1,
    .is_repeatable = true,
    .sql = "select code, body from agent.get_account($1)"};

apr_status_t agent_account_get(const char **body, agent_db_pool_t *db,
                               const char *account_id, agent_error_t **err,
                               apr_pool_t *pool)
{
    const char *params[] = {account_id};

    return agent_db_pool_call(body, db, &get_account, params, err, pool);
}

static const agent_statement_t update_account = {
    .name = "agent_update_account",
    .params = 2,
    .sql = "select code, body from agent.update_account($1, $2)"};

apr_status_t agent_account_update(const char **body, agent_db_pool_t *db,
                                  const char *key_id, const char *request,
                                  agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {key_id, request};

    return agent_db_pool_call(body, db, &update_account, params, err, pool);
}

/* ---- new keys ---- */

/* Sets *body to the record that a function has made of the key, with its text,
 * in pool. */
static apr_status_t show_key(const char **body, const agent_new_key_t *key,
                             const char *record, agent_error_t **err,
                             apr_pool_t *pool)
{
    *body = record != NULL ? agent_new_key_show(key, record, pool) : NULL;
    return *body != NULL
        ? APR_SUCCESS
        : agent_error_set(err, AGENT_E_INTERNAL, NULL,
                          "a function returned another record than a key's",
                          pool);
}

/* Calls a function that stores a new key. The last two of its parameters, which
 * are set here, are the id and the digest of the key. */
static apr_status_t create_key(const char **body, agent_db_pool_t *db,
                               const agent_statement_t *statement,
                               const char **params, agent_error_t **err,
                               apr_pool_t *pool)
{
    agent_new_key_t key;
    const char *record;
    apr_status_t rv;

    if (agent_new_key_make(&key)) {
        params[statement->params - 2] = key.id_text;
        params[statement->params - 1] = key.digest;
        rv = agent_db_pool_call(&record, db, statement, params, err, pool);
        if (rv == APR_SUCCESS) {
            rv = show_key(body, &key, record, err, pool);
        }
    }
    else {
        rv = agent_error_set(
            err, AGENT_E_INTERNAL, NULL,
            "no key can be made: random bytes or SHA-256 failed", pool);
    }
    /* Also after a statement that failed: it may have stored the key. */
    OPENSSL_cleanse(&key, sizeof(key));
    return rv;
}

static const agent_statement_t sign_up = {
    .name = "agent_sign_up",
    .params = 5,
    .sql = "select code, body from agent.sign_up($1, $2, $3, $4, $5)"};

/* The body without the invitation, since PostgreSQL may log its parameters. */
static const char *print_account(agent_raw_t name, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "{\"name\":",
                       apr_pstrmemdup(pool, name.text, name.length), "}", NULL);
}

apr_status_t agent_account_sign_up(const char **body, agent_db_pool_t *db,
                                   agent_raw_t name, const char *invitation,
                                   agent_error_t **err, apr_pool_t *pool)
{
    char account_id[AGENT_UUID_SIZE];
    const char *params[5] = {print_account(name, pool), invitation, account_id};

    agent_uuid_v7(account_id);
    return create_key(body, db, &sign_up, params, err, pool);
}

static const agent_statement_t create_account_key = {
    .name = "agent_create_account_key",
    .params = 4,
    .sql = "select code, body from agent.create_account_key($1, $2, $3, $4)"};

apr_status_t agent_account_create_key(const char **body, agent_db_pool_t *db,
                                      const char *key_id, const char *request,
                                      agent_error_t **err, apr_pool_t *pool)
{
    const char *params[4] = {key_id, request};

    return create_key(body, db, &create_account_key, params, err, pool);
}

static const agent_statement_t rotate_account_key = {
    .name = "agent_rotate_account_key",
    .params = 5,
    .sql = "select code, body from agent.rotate_account_key($1, $2, $3, $4, "
           "$5)"};

apr_status_t agent_account_rotate_key(const char **body, agent_db_pool_t *db,
                                      const agent_account_key_change_t *change,
                                      const char *request, agent_error_t **err,
                                      apr_pool_t *pool)
{
    const char *params[5] = {change->key_id, change->old_id, request};

    return create_key(body, db, &rotate_account_key, params, err, pool);
}

static const agent_statement_t revoke_account_key = {
    .name = "agent_revoke_account_key",
    .params = 2,
    .sql = "select code, body from agent.revoke_account_key($1, $2)"};

apr_status_t agent_account_revoke_key(const char **body, agent_db_pool_t *db,
                                      const agent_account_key_change_t *change,
                                      agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {change->key_id, change->old_id};

    return agent_db_pool_call(body, db, &revoke_account_key, params, err, pool);
}

/* ---- lists ---- */

static apr_status_t read_part(agent_page_t *page, agent_db_pool_t *db,
                              const agent_statement_t *statement,
                              const agent_account_part_t *part,
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {part->account_id, part->after,
                            apr_itoa(pool, part->limit)};

    return agent_db_pool_call_extra(&page->body, &page->next, db, statement,
                                    params, err, pool);
}

static const agent_statement_t list_account_keys = {
    .name = "agent_list_account_keys",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body, next from agent.list_account_keys($1, $2, $3)"};

apr_status_t agent_account_keys(agent_page_t *page, agent_db_pool_t *db,
                                const agent_account_part_t *part,
                                agent_error_t **err, apr_pool_t *pool)
{
    return read_part(page, db, &list_account_keys, part, err, pool);
}

static const agent_statement_t list_audit_log = {
    .name = "agent_list_audit_log",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body, next from agent.list_audit_log($1, $2, $3)"};

apr_status_t agent_account_audit(agent_page_t *page, agent_db_pool_t *db,
                                 const agent_account_part_t *part,
                                 agent_error_t **err, apr_pool_t *pool)
{
    return read_part(page, db, &list_audit_log, part, err, pool);
}

static const agent_statement_t begin_export = {
    .name = "agent_begin_export",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.begin_export($1, $2)"};

apr_status_t agent_account_begin_export(agent_db_pool_t *db, const char *key_id,
                                        agent_error_t **err, apr_pool_t *pool)
{
    char export_id[AGENT_UUID_SIZE];
    const char *params[] = {key_id, export_id};
    const char *body;

    agent_uuid_v7(export_id);
    return agent_db_pool_call(&body, db, &begin_export, params, err, pool);
}

static const agent_statement_t export_account = {
    .name = "agent_export_account",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body, next from agent.export_account($1, $2, $3)"};

apr_status_t agent_account_export(agent_page_t *page, agent_db_pool_t *db,
                                  const agent_account_part_t *part,
                                  agent_error_t **err, apr_pool_t *pool)
{
    return read_part(page, db, &export_account, part, err, pool);
}

static const agent_statement_t get_usage = {
    .name = "agent_get_usage",
    .params = 5,
    .is_repeatable = true,
    .sql = "select code, body, next from agent.get_usage($1, $2, $3, $4, $5)"};

apr_status_t agent_account_usage(agent_page_t *page, agent_db_pool_t *db,
                                 const agent_account_period_t *period,
                                 agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {period->account_id, period->unit, period->start,
                            period->end, period->deployment};

    return agent_db_pool_call_extra(&page->body, &page->next, db, &get_usage,
                                    params, err, pool);
}
