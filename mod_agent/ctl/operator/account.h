/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl account`: the accounts of the platform. */
#ifndef AGENT_CTL_ACCOUNT_H
#define AGENT_CTL_ACCOUNT_H

#include "../base/option.h"

extern const ctl_option_t ctl_account_options[];
extern const ctl_option_t ctl_account_delete_options[];

/* All return an exit status. */
int ctl_account_create(const ctl_arguments_t *arguments);
int ctl_account_list(const ctl_arguments_t *arguments);
int ctl_account_close(const ctl_arguments_t *arguments);
int ctl_account_delete(const ctl_arguments_t *arguments);
int ctl_account_deletions(const ctl_arguments_t *arguments);

/* Writes an account's id in canonical form. CTL_USAGE, after printing why: text
 * is NULL or not an id. */
int ctl_account_read_id(char *out, const char *text);

#endif
