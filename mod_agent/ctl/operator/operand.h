/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that may be secrets: other users see the command line of a process,
 * and a shell keeps it in its history. */
#ifndef AGENT_CTL_OPERAND_H
#define AGENT_CTL_OPERAND_H

#include "../base/option.h"

/*
 * Sets *out to the operand; in place of `-` to the first line of standard
 * input, in pool of the arguments, without its end. A terminal shows a prompt,
 * but not the line; it has its echo again when a signal ends the process at
 * the prompt, for which such signals have a handler from then on. name: of the
 * operand, for the prompt and an error. Returns CTL_DONE or, after printing
 * why, CTL_USAGE.
 */
int ctl_operand_read(const char **out, const ctl_arguments_t *arguments,
                     const char *name);

#endif
