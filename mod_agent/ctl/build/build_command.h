/* SPDX-License-Identifier: Apache-2.0 */
/* The command `agentctl build`: its options, and the session of its own in
 * which root has it done. */
#ifndef AGENT_CTL_BUILD_COMMAND_H
#define AGENT_CTL_BUILD_COMMAND_H

#include "../base/option.h"

extern const ctl_option_t ctl_build_options[];

/* Builds the application in the folder that is the operand. Returns an exit
 * status. */
int ctl_build_command_run(const ctl_arguments_t *arguments);

#endif
