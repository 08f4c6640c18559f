/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl invite create`, `list`, `revoke`; see invite.h. */
#include "invite.h"

#include <apr_strings.h>

#include "../../core/error.h"
#include "../../core/new_key.h"
#include "../../core/uuid.h"
#include "database.h"
#include "interval.h"
#include "operand.h"
#include "../base/output.h"
#include "record.h"

#define DEFAULT_EXPIRES "7d"

const ctl_option_t ctl_invite_options[] = {CTL_DATABASE_OPTIONS,
                                           {NULL, NULL, 0, NULL}};

const ctl_option_t ctl_invite_create_options[] = {
    {"expires", "DURATION", CTL_EXPIRES,
     "its end, from now: 90d, 12h, 30min, 60s (default: " DEFAULT_EXPIRES ")"},
    CTL_DATABASE_OPTIONS,
    {NULL, NULL, 0, NULL}};

static const agent_statement_t create_invitation = {
    .name = "agent_create_invitation",
    .params = 3,
    .sql = "select code, body from agent.create_invitation($1, $2, $3)"};

/* Prints the invitation, which nothing shows again, as the only line; with
 * --json it is a member of its record. */
static int print(const ctl_arguments_t *arguments, const char *body,
                 const char *id, const char *text)
{
    json_object *record = ctl_record_parse(body, arguments->pool);
    const ctl_new_t made = {
        .kind = "invitation", .id = id, .end = "invite revoke", .text = text};

    if (record != NULL) {
        json_object_object_add(record, "invitation",
                               json_object_new_string(text));
    }
    return ctl_record_new(arguments, record, &made);
}

int ctl_invite_create(const ctl_arguments_t *arguments)
{
    const char *expires = arguments->text[CTL_EXPIRES];
    char id[AGENT_UUID_SIZE];
    char digest[AGENT_DIGEST_SIZE];
    char text[AGENT_NEW_KEY_TOKEN_SIZE];
    const char *params[] = {id, digest, NULL};
    const char *body;

    if (ctl_interval_read(&params[2], "expires",
                          expires != NULL ? expires : DEFAULT_EXPIRES, "1s",
                          arguments->pool)
        != CTL_DONE) {
        return CTL_USAGE;
    }
    agent_uuid_v7(id);
    if (!agent_new_key_make_invitation(text, digest)) {
        ctl_error("no invitation can be made: random bytes or SHA-256 failed "
                  "(%s)",
                  agent_error_code(AGENT_E_INTERNAL));
        return CTL_FAILED;
    }
    return ctl_database_call(&body, arguments, &create_invitation, params)
            == CTL_DONE
        ? print(arguments, body, id, text)
        : CTL_FAILED;
}

/* ---- existing invitations ---- */

static const agent_statement_t list_invitations = {
    .name = "agent_list_invitations",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.list_invitations($1, $2)"};

static int read_page(const char **body, const ctl_arguments_t *arguments,
                     const char *after)
{
    const char *params[] = {after, APR_STRINGIFY(CTL_PAGE)};

    return ctl_database_call(body, arguments, &list_invitations, params);
}

int ctl_invite_list(const ctl_arguments_t *arguments)
{
    static const ctl_column_t columns[] = {
        {"INVITATION ID", 36, ctl_record_text, "invitation_id"},
        {"STATE", 7, ctl_record_state, "valid"},
        {"CREATED", 20, ctl_record_time, "created_at"},
        {"EXPIRES", 20, ctl_record_time, "expires_at"},
        {"ACCOUNT", 36, ctl_record_text, "account_id"},
        {"CREATED BY", 0, ctl_record_text, "created_by"},
        {NULL, 0, NULL, NULL}};

    return ctl_record_list(arguments, columns, "invitation_id", read_page);
}

static const agent_statement_t revoke_invitation = {
    .name = "agent_revoke_invitation",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.revoke_invitation($1, $2)"};

/* Sets one of params: to the id, or to the digest of an invitation, whose text
 * has no id. */
static int read_invitation(const char **params, char id[AGENT_UUID_SIZE],
                           char digest[AGENT_DIGEST_SIZE], const char *text)
{
    if (agent_uuid_parse(id, text)) {
        params[0] = id;
        return CTL_DONE;
    }
    if (!agent_new_key_is_invitation(text)) {
        ctl_error("expected the id of an invitation, a UUID, or an invitation");
        return CTL_USAGE;
    }
    if (!agent_new_key_digest_token(digest, text)) {
        ctl_error("SHA-256 failed (%s)", agent_error_code(AGENT_E_INTERNAL));
        return CTL_FAILED;
    }
    params[1] = digest;
    return CTL_DONE;
}

int ctl_invite_revoke(const ctl_arguments_t *arguments)
{
    char id[AGENT_UUID_SIZE];
    char digest[AGENT_DIGEST_SIZE];
    const char *params[] = {NULL, NULL};
    const char *body;
    const char *text;
    int status = ctl_operand_read(&text, arguments, "INVITATION");

    if (status == CTL_DONE) {
        status = read_invitation(params, id, digest, text);
    }
    if (status == CTL_DONE) {
        status = ctl_database_call(&body, arguments, &revoke_invitation,
                                   params);
    }
    return status == CTL_DONE ? ctl_record_result(arguments, body, NULL)
                              : status;
}
