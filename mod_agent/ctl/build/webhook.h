/* SPDX-License-Identifier: Apache-2.0 */
/* The lines for httpd.conf that follow from webhooks in langgraph.json. */
#ifndef AGENT_CTL_WEBHOOK_H
#define AGENT_CTL_WEBHOOK_H

#include "lines.h"

/* Prints the lines for webhooks, and warnings about settings that httpd.conf
 * cannot have. */
void ctl_webhook_print(const ctl_lines_t *lines);

#endif
