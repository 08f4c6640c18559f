/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl key`: API keys of accounts. Ids and secrets are made here; the
 * database gets digests. */
#ifndef AGENT_CTL_KEY_H
#define AGENT_CTL_KEY_H

#include "../base/option.h"

extern const ctl_option_t ctl_key_create_options[];
extern const ctl_option_t ctl_key_rotate_options[];
/* The options of revoke. */
extern const ctl_option_t ctl_key_options[];
extern const ctl_option_t ctl_key_list_options[];

/* All return an exit status. */
int ctl_key_create(const ctl_arguments_t *arguments);
int ctl_key_list(const ctl_arguments_t *arguments);
int ctl_key_revoke(const ctl_arguments_t *arguments);
int ctl_key_rotate(const ctl_arguments_t *arguments);

#endif
