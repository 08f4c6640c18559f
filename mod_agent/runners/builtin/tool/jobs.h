/* SPDX-License-Identifier: Apache-2.0 */
/* The tool calls of one AI message: which are open, and how many run at once.
 */
#ifndef AGENT_RUNNER_JOBS_H
#define AGENT_RUNNER_JOBS_H

#include "job.h"
#include "runners/builtin/base/problem.h"

/* The most calls of a run at once; the others wait. */
#define RUNNER_TOOL_ACTIVE_MAX 16

/*
 * Makes a job of each call of the last AI message that has no result, and
 * starts as many as may run at once. If jobs->unfinished is 0 afterwards, all
 * are done; otherwise on_end is called later. The caller zeroes jobs and sets
 * pool, graph, http, the ids and the callbacks up to baton. APR_EGENERAL: the
 * message has too many calls and none was started; *problem is set.
 */
apr_status_t runner_jobs_start(runner_jobs_t *jobs, json_object *messages,
                               runner_problem_t **problem);

/* The results of the jobs that are done, in the order of the calls: an array of
 * messages, one reference. */
json_object *runner_jobs_messages(const runner_jobs_t *jobs);

#endif
