/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl key`; see key.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "key.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_tables.h>

#include "../../core/api_key.h"
#include "../../core/error.h"
#include "../../core/json.h"
#include "../../core/new_key.h"
#include "../../core/uuid.h"
#include "../../db/query.h"
#include "account.h"
#include "database.h"
#include "interval.h"
#include "operand.h"
#include "../base/output.h"
#include "record.h"

#define DEFAULT_SCOPES  "read,run"
#define DEFAULT_OVERLAP "1d"

const ctl_option_t ctl_key_options[] = {CTL_DATABASE_OPTIONS,
                                        {NULL, NULL, 0, NULL}};

const ctl_option_t ctl_key_list_options[] = {
    {"account", "ID", CTL_OPERAND, "the account, in place of ACCOUNT"},
    CTL_DATABASE_OPTIONS,
    {NULL, NULL, 0, NULL}};

const ctl_option_t ctl_key_create_options[] = {
    {"account", "ID", CTL_ACCOUNT, "the account whose key it is; required"},
    {"name", "NAME", CTL_NAME, "display name; required"},
    {"kind", "KIND", CTL_KIND,
     "service, personal (with --user), or deployment\n"
     "(with --deployment) (default: service)"},
    {"user", "USER", CTL_USER, "the user of its runs, of a personal key"},
    {"deployment", "NAME", CTL_DEPLOYMENT,
     "the deployment that it is for (default: all of the\naccount)"},
    {"scopes", "LIST", CTL_SCOPES,
     "of read, run, deploy, admin (default: " DEFAULT_SCOPES ")"},
    {"expires", "DURATION", CTL_EXPIRES,
     "its end, from now: 90d, 12h, 30min, 60s (default: never)"},
    CTL_DATABASE_OPTIONS,
    {NULL, NULL, 0, NULL}};

const ctl_option_t ctl_key_rotate_options[] = {
    {"overlap", "DURATION", CTL_OVERLAP,
     "the old key is valid for that much longer: 12h, 0s\n"
     "(default: " DEFAULT_OVERLAP ")"},
    CTL_DATABASE_OPTIONS,
    {NULL, NULL, 0, NULL}};

/* ---- arguments ---- */

/* Sets *out to a literal of an array, in pool. PostgreSQL checks the words. */
static const char *read_scopes(const char *text, apr_pool_t *pool)
{
    apr_array_header_t *words = apr_array_make(pool, 4, sizeof(const char *));
    char *rest = apr_pstrdup(pool, text != NULL ? text : DEFAULT_SCOPES);

    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        APR_ARRAY_PUSH(words, const char *) = word;
    }
    return agent_db_array((const char *const *)words->elts,
                          (apr_size_t)words->nelts, pool);
}

static int refuse(const char *message)
{
    ctl_error("%s", message);
    return CTL_USAGE;
}

/* The options must go with the kind. */
static int check_kind(agent_api_key_kind_t *kind,
                      const ctl_arguments_t *arguments)
{
    const char *word = arguments->text[CTL_KIND];

    if (!agent_api_key_read_kind(kind, word != NULL ? word : "service")) {
        return refuse("--kind: expected service, personal or deployment");
    }
    if ((*kind == AGENT_API_KEY_PERSONAL)
        != (arguments->text[CTL_USER] != NULL)) {
        return refuse("--user: a personal key has one, other keys have none");
    }
    if (*kind == AGENT_API_KEY_DEPLOYMENT
        && arguments->text[CTL_DEPLOYMENT] == NULL) {
        return refuse("--deployment: a key of kind deployment is for one");
    }
    if (arguments->text[CTL_NAME] == NULL) {
        return refuse("--name: expected the name that `agentctl key list` "
                      "shows for the key, got none");
    }
    return CTL_DONE;
}

/* Sets *id to a key ID, in pool, also of a whole key, as a scanner for secrets
 * has found it. */
static int read_key_id(const char **id, const ctl_arguments_t *arguments)
{
    agent_api_key_t key;
    const char *text;

    if (ctl_operand_read(&text, arguments, "KEY") != CTL_DONE) {
        return CTL_USAGE;
    }
    if (agent_api_key_parse(&key, text) == AGENT_API_KEY_OK) {
        *id = apr_pstrdup(arguments->pool, key.id);
        return CTL_DONE;
    }
    *id = text;
    if (strlen(text) == AGENT_API_KEY_ID_CHARS) {
        return CTL_DONE;
    }
    return refuse("expected a key ID, of 22 letters and digits, or a key");
}

/* ---- new keys ---- */

/* Returns an exit status. */
static int make_key(agent_new_key_t *new)
{
    if (agent_new_key_make(new)) {
        return CTL_DONE;
    }
    ctl_error("no key can be made: random bytes or SHA-256 failed (%s)",
              agent_error_code(AGENT_E_INTERNAL));
    return CTL_FAILED;
}

/* Prints the key, which nothing shows again, as the only line; with --json it
 * is a member of its record. */
static int print_key(const ctl_arguments_t *arguments, const char *body,
                     const agent_new_key_t *new)
{
    json_object *record = ctl_record_parse(
        body != NULL ? agent_new_key_show(new, body, arguments->pool) : NULL,
        arguments->pool);
    const ctl_new_t made = {
        .kind = "key",
        .id = new->id_text,
        .end = "key revoke",
        .text = record != NULL ? agent_json_string(record, "key", "") : NULL};

    return ctl_record_new(arguments, record, &made);
}

static const agent_statement_t create_api_key = {
    .name = "agent_create_api_key",
    .params = 9,
    .sql = "select code, body from agent.create_api_key($1, $2, $3, $4, $5, "
           "$6, $7, $8, $9)"};

int ctl_key_create(const ctl_arguments_t *arguments)
{
    const char *const *text = arguments->text;
    char account[AGENT_UUID_SIZE];
    agent_api_key_kind_t kind;
    agent_new_key_t new;
    const char *lifetime;
    const char *body;

    if (check_kind(&kind, arguments) != CTL_DONE
        || ctl_account_read_id(account, text[CTL_ACCOUNT]) != CTL_DONE
        || ctl_interval_read(&lifetime, "expires", text[CTL_EXPIRES], "1s",
                             arguments->pool)
            != CTL_DONE) {
        return CTL_USAGE;
    }
    if (make_key(&new) == CTL_DONE) {
        const char *params[] = {new.id_text,
                                account,
                                new.digest,
                                agent_api_key_kind_word(kind),
                                text[CTL_NAME],
                                text[CTL_USER],
                                text[CTL_DEPLOYMENT],
                                read_scopes(text[CTL_SCOPES], arguments->pool),
                                lifetime};

        if (ctl_database_call(&body, arguments, &create_api_key, params)
            == CTL_DONE) {
            return print_key(arguments, body, &new);
        }
    }
    return CTL_FAILED;
}

static const agent_statement_t rotate_api_key = {
    .name = "agent_rotate_api_key",
    .params = 4,
    .sql = "select code, body from agent.rotate_api_key($1, $2, $3, $4)"};

int ctl_key_rotate(const ctl_arguments_t *arguments)
{
    const char *overlap = arguments->text[CTL_OVERLAP];
    const char *interval;
    const char *id;
    const char *body;
    agent_new_key_t new;

    if (read_key_id(&id, arguments) != CTL_DONE
        || ctl_interval_read(&interval, "overlap",
                             overlap != NULL ? overlap : DEFAULT_OVERLAP, "0s",
                             arguments->pool)
            != CTL_DONE) {
        return CTL_USAGE;
    }
    if (make_key(&new) == CTL_DONE) {
        const char *params[] = {id, new.id_text, new.digest, interval};

        if (ctl_database_call(&body, arguments, &rotate_api_key, params)
            == CTL_DONE) {
            return print_key(arguments, body, &new);
        }
    }
    return CTL_FAILED;
}

/* ---- existing keys ---- */

static const agent_statement_t list_api_keys = {
    .name = "agent_list_api_keys",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body from agent.list_api_keys($1, $2, $3)"};

static int read_page(const char **body, const ctl_arguments_t *arguments,
                     const char *after)
{
    const char *params[] = {arguments->operand, after, APR_STRINGIFY(CTL_PAGE)};

    return ctl_database_call(body, arguments, &list_api_keys, params);
}

int ctl_key_list(const ctl_arguments_t *arguments)
{
    static const ctl_column_t columns[] = {
        {"KEY ID", AGENT_API_KEY_ID_CHARS, ctl_record_text, "key_id"},
        {"KIND", 10, ctl_record_text, "kind"},
        {"STATE", 7, ctl_record_state, "valid"},
        {"EXPIRES", 20, ctl_record_time, "expires_at"},
        {"USED", 14, ctl_record_hour, "last_used_at"},
        {"SCOPES", 21, ctl_record_text, "scopes"},
        {"DEPLOYMENT", 10, ctl_record_text, "deployment"},
        {"NAME", 0, ctl_record_text, "name"},
        {NULL, 0, NULL, NULL}};
    char account[AGENT_UUID_SIZE];

    return ctl_account_read_id(account, arguments->operand) == CTL_DONE
        ? ctl_record_list(arguments, columns, "key_id", read_page)
        : CTL_USAGE;
}

static const agent_statement_t revoke_api_key = {
    .name = "agent_revoke_api_key",
    .params = 1,
    .is_repeatable = true,
    .sql = "select code, body from agent.revoke_api_key($1)"};

int ctl_key_revoke(const ctl_arguments_t *arguments)
{
    const char *params[1];
    const char *body;

    if (read_key_id(&params[0], arguments) != CTL_DONE) {
        return CTL_USAGE;
    }
    return ctl_database_call(&body, arguments, &revoke_api_key, params)
            == CTL_DONE
        ? ctl_record_result(arguments, body, NULL)
        : CTL_FAILED;
}
