/* SPDX-License-Identifier: Apache-2.0 */
/* agentctl: prepares LangGraph applications for mod_agent, manages accounts and
 * API keys in its database, and checks the region of that. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <limits.h>
#include <unistd.h>

#include <apr_general.h>

#include "operator/account.h"
#include "build/build_command.h"
#include "operator/invite.h"
#include "operator/key.h"
#include "operator/region.h"

static const ctl_command_t commands[] = {
    {"build", "DIRECTORY",
     "Prepares the LangGraph application in DIRECTORY, which has a\n"
     "langgraph.json, for AgentApplication: installs its dependencies, "
     "imports\n"
     "its graphs, and prints what they take and return, and the lines for\n"
     "httpd.conf.",
     ctl_build_options, ctl_build_command_run},
    {"account create", "NAME",
     "Creates an account with a display name, and prints its id.",
     ctl_account_options, ctl_account_create},
    {"account list", NULL, "Lists all accounts.", ctl_account_options,
     ctl_account_list},
    {"account close", "ACCOUNT",
     "Closes the account with that id: its keys are not valid from then on. "
     "Its\ndata stays.",
     ctl_account_options, ctl_account_close},
    {"account delete", "ACCOUNT",
     "Closes the account with that id and deletes everything of it but its id "
     "and\nwho did what, and prints the id of the deletion. Supervisors delete "
     "it in\npieces; an hour later they end the deletion.",
     ctl_account_delete_options, ctl_account_delete},
    {"account deletions", NULL,
     "Lists the deletions of accounts, also those that have ended. With --json "
     "also\nthe number of deleted rows of each table, and the dates when logs "
     "and backups\nexpire.",
     ctl_account_options, ctl_account_deletions},
    {"key create", NULL,
     "Creates an API key, and prints it. The database has only a digest of "
     "it:\nit is not shown again.",
     ctl_key_create_options, ctl_key_create},
    {"key list", "ACCOUNT", "Lists the API keys of the account with that id.",
     ctl_key_list_options, ctl_key_list},
    {"key revoke", "KEY",
     "Revokes the API key with that key ID, or that key, within 2 seconds on "
     "all\nservers. For - it is read from standard input.",
     ctl_key_options, ctl_key_revoke},
    {"key rotate", "KEY",
     "Creates an API key that takes the place of another one, and prints it.\n"
     "For - the old key, or its key ID, is read from standard input.",
     ctl_key_rotate_options, ctl_key_rotate},
    {"region check", "REGION",
     "Checks that the database belongs to that region.", ctl_region_options,
     ctl_region_check},
    {"invite create", NULL,
     "Creates an invitation, and prints it: with AgentSignUp Invitation it\n"
     "creates one account. The database has only a digest of it: it is not "
     "shown\nagain.",
     ctl_invite_create_options, ctl_invite_create},
    {"invite list", NULL,
     "Lists the invitations, also those that are no longer valid.",
     ctl_invite_options, ctl_invite_list},
    {"invite revoke", "INVITATION",
     "Revokes the invitation with that id, or that invitation. For - it is "
     "read\nfrom standard input.",
     ctl_invite_options, ctl_invite_revoke},
    {NULL, NULL, NULL, NULL, NULL}};

/* Programs that are executed must not inherit the caller's descriptors, such as
 * a log, a lock or a socket. */
static void close_inherited(void)
{
    if (close_range(STDERR_FILENO + 1, UINT_MAX, 0) != 0) {
        for (int fd = STDERR_FILENO + 1; fd < sysconf(_SC_OPEN_MAX); fd++) {
            close(fd);
        }
    }
}

int main(int argc, char **argv)
{
    apr_pool_t *pool;
    int status;

    close_inherited();
    apr_app_initialize(&argc, (const char *const **)(void *)&argv, NULL);
    apr_pool_create(&pool, NULL);
    status = ctl_option_run(commands, argc, argv, pool);
    apr_pool_destroy(pool);
    apr_terminate();
    return status;
}
