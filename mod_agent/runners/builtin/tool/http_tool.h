/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools over HTTP: the request has the arguments as a JSON body (with GET as
 * query parameters), the reply is the result. The URL is from the server's
 * configuration, never from a client.
 */
#ifndef AGENT_RUNNER_HTTP_TOOL_H
#define AGENT_RUNNER_HTTP_TOOL_H

#include "job.h"

/* Starts the call. The job may be done on return; otherwise jobs->on_reply is
 * called once it is done. */
void runner_http_tool_start(runner_job_t *job);

#endif
