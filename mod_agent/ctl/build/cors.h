/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of httpd.conf that stand for http.cors of langgraph.json. */
#ifndef AGENT_CTL_CORS_H
#define AGENT_CTL_CORS_H

#include "build.h"

/* Prints AgentAllowOrigin, and for the rest lines of mod_headers for the paths
 * below prefix, "" for all. */
void ctl_cors_print(const ctl_build_t *build, const char *prefix);

#endif
