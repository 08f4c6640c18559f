/* SPDX-License-Identifier: Apache-2.0 */
/* The output of agentctl. */
#ifndef AGENT_CTL_SAY_H
#define AGENT_CTL_SAY_H

/* Prints `agentctl: ` and the message to standard error. */
void ctl_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints `agentctl: warning: ` and the message to standard error. */
void ctl_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints what is done next to standard output, before the output of commands.
 */
void ctl_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
