/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl invite create`, `list` and `revoke`: invitations to create an
 * account. */
#ifndef AGENT_CTL_INVITE_H
#define AGENT_CTL_INVITE_H

#include "../base/option.h"

extern const ctl_option_t ctl_invite_create_options[];
/* The options of list and revoke. */
extern const ctl_option_t ctl_invite_options[];

/* All return an exit status. */
int ctl_invite_create(const ctl_arguments_t *arguments);
int ctl_invite_list(const ctl_arguments_t *arguments);
int ctl_invite_revoke(const ctl_arguments_t *arguments);

#endif
