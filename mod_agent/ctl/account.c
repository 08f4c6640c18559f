/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl account`; see account.h. */
#include "account.h"

#include <apr_strings.h>

#include "../core/uuid.h"
#include "database.h"
#include "record.h"
#include "say.h"

const ctl_option_t ctl_account_options[] = {CTL_DATABASE_OPTIONS,
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
    const char *body;

    agent_uuid_v7(id);
    return ctl_database_call(&body, arguments, &create_account, params)
            == CTL_DONE
        ? ctl_record_result(arguments, body, id)
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
