/* SPDX-License-Identifier: Apache-2.0 */
/* The exit statuses of agentctl. */
#ifndef AGENT_CTL_STATUS_H
#define AGENT_CTL_STATUS_H

#define CTL_DONE 0
/* Refused, or failed. */
#define CTL_FAILED 1
/* The command line, or langgraph.json, cannot be used. */
#define CTL_USAGE 2

#endif
