/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl region`: the region of the database. */
#ifndef AGENT_CTL_REGION_H
#define AGENT_CTL_REGION_H

#include "../base/option.h"

extern const ctl_option_t ctl_region_options[];

/* Returns an exit status: CTL_FAILED, after printing why, for another region
 * than the operand. */
int ctl_region_check(const ctl_arguments_t *arguments);

#endif
