/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl account`; see account.h. */
#include "account.h"

#include <string.h>

#include <apr_strings.h>

#include "../../core/uuid.h"
#include "database.h"
#include "../base/duration.h"
#include "../base/output.h"
#include "record.h"

const ctl_option_t ctl_account_options[] = {CTL_DATABASE_OPTIONS,
                                            {NULL, NULL, 0, NULL}};

const ctl_option_t ctl_account_delete_options[] = {
    {"confirm", "ACCOUNT", CTL_CONFIRM, "the same id once more"},
    {"log-retention", "DURATION", CTL_LOG_RETENTION,
     "for how long logs are kept, for example 14d\n"
     "(default: not recorded)"},
    {"backup-retention", "DURATION", CTL_BACKUP_RETENTION,
     "for how long backups are kept, for example 35d\n"
     "(default: not recorded)"},
    CTL_DATABASE_OPTIONS,
    {NULL, NULL, 0, NULL}};

int ctl_account_read_id(char *out, const char *text)
{
    if (text != NULL && agent_uuid_parse(out, text)) {
        return CTL_DONE;
    }
    ctl_error("expected the id of an account, got %s",
              text != NULL ? text : "none (--account)");
    return CTL_USAGE;
}

/* Not repeatable: the second execution would find the account of the first. */
static const agent_statement_t create_account = {
    .name = "agent_create_account",
    .params = 2,
    .sql = "select code, body from agent.create_account($1, $2)"};

int ctl_account_create(const ctl_arguments_t *arguments)
{
    char id[AGENT_UUID_SIZE];
    const char *params[] = {id, arguments->operand};
    const ctl_new_t made = {
        .kind = "account", .id = id, .end = "account close", .text = id};
    const char *body;

    agent_uuid_v7(id);
    return ctl_database_call(&body, arguments, &create_account, params)
            == CTL_DONE
        ? ctl_record_new(arguments, ctl_record_parse(body, arguments->pool),
                         &made)
        : CTL_FAILED;
}

static const agent_statement_t list_accounts = {
    .name = "agent_list_accounts",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.list_accounts($1, $2)"};

static int read_page(const char **body, const ctl_arguments_t *arguments,
                     const char *after)
{
    const char *params[] = {after, APR_STRINGIFY(CTL_PAGE)};

    return ctl_database_call(body, arguments, &list_accounts, params);
}

int ctl_account_list(const ctl_arguments_t *arguments)
{
    static const ctl_column_t columns[] = {
        {"ACCOUNT", 36, ctl_record_text, "account_id"},
        {"STATE", 6, ctl_record_state, "open"},
        {"CREATED", 20, ctl_record_time, "created_at"},
        {"NAME", 0, ctl_record_text, "name"},
        {NULL, 0, NULL, NULL}};

    return ctl_record_list(arguments, columns, "account_id", read_page);
}

static const agent_statement_t close_account = {
    .name = "agent_close_account",
    .params = 1,
    .is_repeatable = true,
    .sql = "select code, body from agent.close_account($1)"};

int ctl_account_close(const ctl_arguments_t *arguments)
{
    char id[AGENT_UUID_SIZE];
    const char *params[] = {id};
    const char *body;
    int status = ctl_account_read_id(id, arguments->operand);

    if (status == CTL_DONE) {
        status = ctl_database_call(&body, arguments, &close_account, params);
    }
    return status == CTL_DONE ? ctl_record_result(arguments, body, NULL)
                              : status;
}

/* ---- deletions ---- */

/* Sets *days to the number of days that an option names, in pool; NULL stays
 * NULL. */
static int read_days(const char **days, const char *option, const char *text,
                     apr_pool_t *pool)
{
    static const ctl_duration_range_t range = {"0d", "3650d", "d"};
    apr_int64_t number;

    *days = NULL;
    if (text == NULL) {
        return CTL_DONE;
    }
    if (ctl_duration_read(&number, option, text, &range) != CTL_DONE) {
        return CTL_USAGE;
    }
    *days = apr_psprintf(pool, "%" APR_INT64_T_FMT, number);
    return CTL_DONE;
}

/* The id is asked for twice: nothing brings an account back. */
static int read_deletion(char *id, const char **log_days,
                         const char **backup_days,
                         const ctl_arguments_t *arguments)
{
    char confirmed[AGENT_UUID_SIZE];
    const char *const *text = arguments->text;

    if (ctl_account_read_id(id, arguments->operand) != CTL_DONE) {
        return CTL_USAGE;
    }
    if (text[CTL_CONFIRM] == NULL
        || !agent_uuid_parse(confirmed, text[CTL_CONFIRM])
        || strcmp(confirmed, id) != 0) {
        ctl_error("expected the same id once more (--confirm %s)", id);
        return CTL_USAGE;
    }
    return read_days(log_days, "log-retention", text[CTL_LOG_RETENTION],
                     arguments->pool)
            == CTL_DONE
        ? read_days(backup_days, "backup-retention", text[CTL_BACKUP_RETENTION],
                    arguments->pool)
        : CTL_USAGE;
}

/* Repeatable: a second deletion is the first one, with the times that it did
 * not have. */
static const agent_statement_t delete_account = {
    .name = "agent_delete_account",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body from agent.delete_account($1, $2, $3, $4)"};

int ctl_account_delete(const ctl_arguments_t *arguments)
{
    char id[AGENT_UUID_SIZE];
    char deletion_id[AGENT_UUID_SIZE];
    const char *params[] = {id, deletion_id, NULL, NULL};
    const char *body;
    json_object *record;
    int status = read_deletion(id, &params[2], &params[3], arguments);

    agent_uuid_v7(deletion_id);
    if (status == CTL_DONE) {
        status = ctl_database_call(&body, arguments, &delete_account, params);
    }
    if (status != CTL_DONE) {
        return status;
    }
    /* The record is that of an earlier deletion, when there is one. */
    record = ctl_record_parse(body, arguments->pool);
    return record != NULL ? ctl_record_result(
               arguments, body,
               ctl_record_text(record, "deletion_id", arguments->pool))
                          : CTL_FAILED;
}

static const agent_statement_t list_deletions = {
    .name = "agent_list_deletions",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.list_deletions($1, $2)"};

static int read_deletions(const char **body, const ctl_arguments_t *arguments,
                          const char *after)
{
    const char *params[] = {after, APR_STRINGIFY(CTL_PAGE)};

    return ctl_database_call(body, arguments, &list_deletions, params);
}

int ctl_account_deletions(const ctl_arguments_t *arguments)
{
    static const ctl_column_t columns[] = {
        {"DELETION", 36, ctl_record_text, "deletion_id"},
        {"ACCOUNT", 36, ctl_record_text, "account_id"},
        {"STATUS", 8, ctl_record_text, "status"},
        {"REQUESTED", 20, ctl_record_time, "requested_at"},
        {"FINISHED", 20, ctl_record_time, "finished_at"},
        {"BACKUPS EXPIRE", 20, ctl_record_time, "backups_expire_at"},
        {NULL, 0, NULL, NULL}};

    return ctl_record_list(arguments, columns, "deletion_id", read_deletions);
}
