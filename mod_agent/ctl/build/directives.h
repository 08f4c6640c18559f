/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of httpd.conf that serve an application. */
#ifndef AGENT_CTL_DIRECTIVES_H
#define AGENT_CTL_DIRECTIVES_H

#include <stdbool.h>

#include "build.h"

/* Returns false, after printing why, if no line can name the directory. */
bool ctl_directives_check(const ctl_build_t *build);

/* Prints the directives that serve the application, with those that stand for
 * members of langgraph.json. */
void ctl_directives_print(const ctl_build_t *build);

#endif
