/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts, as their customers manage them. key_id: of the request's key, whose
 * account is changed, and which is checked again in the transaction of the
 * change: UNKNOWN_KEY if it was revoked since it was verified. All functions
 * also return the errors of agent_db_pool_call(). Those whose action the audit
 * log records also return TOO_MANY_ACTIONS, except the revocation of a key and
 * the closing of the account; those that make a key also return LIMIT.
 */
#ifndef AGENT_MODEL_ACCOUNT_H
#define AGENT_MODEL_ACCOUNT_H

#include "../core/new_key.h"
#include "../core/raw.h"
#include "page.h"

/* *body: the owner of the key. */
apr_status_t agent_account_describe_key(const char **body, agent_db_pool_t *db,
                                        const char *key_id, agent_error_t **err,
                                        apr_pool_t *pool);

/* *body: the record of the account. */
apr_status_t agent_account_get(const char **body, agent_db_pool_t *db,
                               const char *account_id, agent_error_t **err,
                               apr_pool_t *pool);

/* Renames or closes it. Errors: ACCOUNT_BUILT_IN, INVALID. */
apr_status_t agent_account_update(const char **body, agent_db_pool_t *db,
                                  const char *key_id, const char *request,
                                  agent_error_t **err, apr_pool_t *pool);

/* Characters of a deletion token that a client chooses: it gives access to the
 * record of a deletion. */
#define AGENT_DELETION_TOKEN_MIN 32
#define AGENT_DELETION_TOKEN_MAX 128

/* Checks a deletion token; NULL: there is none. Error: INVALID. */
apr_status_t agent_account_check_token(const char *token, agent_error_t **err,
                                       apr_pool_t *pool);

/* The request to delete the account of its key. */
typedef struct agent_account_deletion_t {
    const char *key_id;
    const char *request;
    /* The deletion token that the client has chosen, checked; NULL: a new one
     * is made. */
    const char *token;
    /* Days for which logs and backups are kept; -1: unknown. */
    int log_days;
    int backup_days;
} agent_account_deletion_t;

/* Closes an account and begins its deletion. *body: the record, in pool, with
 * the deletion token; a new one is returned only here. Errors:
 * ACCOUNT_BUILT_IN, INVALID. */
apr_status_t agent_account_delete(const char **body, agent_db_pool_t *db,
                                  const agent_account_deletion_t *deletion,
                                  agent_error_t **err, apr_pool_t *pool);

/* *body: the record of a deletion. token: its deletion token. Error:
 * DELETION_NOT_FOUND. */
apr_status_t agent_account_get_deletion(const char **body, agent_db_pool_t *db,
                                        const char *token, agent_error_t **err,
                                        apr_pool_t *pool);

/*
 * Creates an account with its first key. name: the member of the body.
 * invitation: its digest; NULL: none is needed. *body: the record of the key,
 * in pool, with its text and that of the account. Errors: INVITATION, INVALID.
 */
apr_status_t agent_account_sign_up(const char **body, agent_db_pool_t *db,
                                   agent_raw_t name, const char *invitation,
                                   agent_error_t **err, apr_pool_t *pool);

/* *body: the record of the new key, in pool, with its text. Errors:
 * DEPLOYMENT_NOT_FOUND, INVALID. */
apr_status_t agent_account_create_key(const char **body, agent_db_pool_t *db,
                                      const char *key_id, const char *request,
                                      agent_error_t **err, apr_pool_t *pool);

/* A change of a key of the account. */
typedef struct agent_account_key_change_t {
    /* Of the key of the request. */
    const char *key_id;
    /* Of the key that is changed. */
    const char *old_id;
} agent_account_key_change_t;

/* Rotates a key of the account. The new key gets the original lifetime of the
 * old one, on every rotation. *body: as of agent_account_create_key(). Errors:
 * KEY_NOT_FOUND, KEY_REVOKED. */
apr_status_t agent_account_rotate_key(const char **body, agent_db_pool_t *db,
                                      const agent_account_key_change_t *change,
                                      const char *request, agent_error_t **err,
                                      apr_pool_t *pool);

/* *body: the record of the revoked key. Error: KEY_NOT_FOUND. */
apr_status_t agent_account_revoke_key(const char **body, agent_db_pool_t *db,
                                      const agent_account_key_change_t *change,
                                      agent_error_t **err, apr_pool_t *pool);

/* The part of a list that a request asks for. */
typedef struct agent_account_part_t {
    const char *account_id;
    /* The last id of the page before, as text; NULL: the first page. */
    const char *after;
    int limit;
} agent_account_part_t;

/* Lists the keys of the account, or its audit log; page->next: the next
 * `after`. */
apr_status_t agent_account_keys(agent_page_t *page, agent_db_pool_t *db,
                                const agent_account_part_t *part,
                                agent_error_t **err, apr_pool_t *pool);
apr_status_t agent_account_audit(agent_page_t *page, agent_db_pool_t *db,
                                 const agent_account_part_t *part,
                                 agent_error_t **err, apr_pool_t *pool);

/* Records that the account is exported, before its first part. */
apr_status_t agent_account_begin_export(agent_db_pool_t *db, const char *key_id,
                                        agent_error_t **err, apr_pool_t *pool);

/* The rows of the account, as lines of JSON: page->next: the next `after`, a
 * cursor. limit: the size of a part in bytes, which its last row may exceed. */
apr_status_t agent_account_export(agent_page_t *page, agent_db_pool_t *db,
                                  const agent_account_part_t *part,
                                  agent_error_t **err, apr_pool_t *pool);

/* The period of sums. */
typedef struct agent_account_period_t {
    const char *account_id;
    /* hour or day. */
    const char *unit;
    /* Times as texts, and the name of a deployment; NULL: see agent.get_usage.
     */
    const char *start;
    const char *end;
    const char *deployment;
} agent_account_period_t;

/* The runs that ended in a period; page->next: the start of the next page.
 * Error: INVALID. */
apr_status_t agent_account_usage(agent_page_t *page, agent_db_pool_t *db,
                                 const agent_account_period_t *period,
                                 agent_error_t **err, apr_pool_t *pool);

#endif
