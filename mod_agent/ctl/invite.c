/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl invite`; see invite.h. */
#include "invite.h"

#include "../core/error.h"
#include "../core/new_key.h"
#include "../core/uuid.h"
#include "database.h"
#include "key.h"
#include "output.h"
#include "record.h"

#define DEFAULT_EXPIRES "7d"

const ctl_option_t ctl_invite_options[] = {
    {"expires", "TIME", CTL_EXPIRES,
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
                 const char *text)
{
    json_object *record = ctl_record_parse(body, arguments->pool);

    if (record == NULL) {
        return CTL_FAILED;
    }
    if (arguments->flag[CTL_JSON]) {
        json_object_object_add(record, "invitation",
                               json_object_new_string(text));
        ctl_record_print(record);
    }
    else {
        ctl_print("%s", text);
    }
    return ctl_record_flush();
}

int ctl_invite(const ctl_arguments_t *arguments)
{
    const char *expires = arguments->text[CTL_EXPIRES];
    char id[AGENT_UUID_SIZE];
    char digest[AGENT_DIGEST_SIZE];
    char text[AGENT_NEW_KEY_TOKEN_SIZE];
    const char *params[] = {id, digest, NULL};
    const char *body;

    if (ctl_key_read_time(&params[2], "expires",
                          expires != NULL ? expires : DEFAULT_EXPIRES, 1,
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
        ? print(arguments, body, text)
        : CTL_FAILED;
}
