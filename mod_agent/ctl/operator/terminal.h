/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that are typed into a terminal. */
#ifndef AGENT_CTL_TERMINAL_H
#define AGENT_CTL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Shows the prompt on the terminal of the process, else on standard error, and
 * sets line to what is typed, without its end; the rest of a longer line is
 * dropped. The terminal does not show it. A signal, also one of a key such as
 * ^C, has its usual effect, after the terminal is as it was, but for those of
 * faults and SIGSTOP; if the process goes on, the prompt is shown again. In the
 * background it stops, and asks in the foreground. Returns false if nothing is
 * typed.
 */
bool ctl_terminal_read(char *line, size_t size, const char *prompt);

#endif
