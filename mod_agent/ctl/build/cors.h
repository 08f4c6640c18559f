/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of httpd.conf that stand for http.cors of langgraph.json. */
#ifndef AGENT_CTL_CORS_H
#define AGENT_CTL_CORS_H

#include "lines.h"

/* Prints AgentAllowOrigin, and for the rest lines of mod_headers for the paths
 * below prefix, "" for all. */
void ctl_cors_print(const ctl_lines_t *lines, const char *prefix);

#endif
