/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies with progress: the content type is application/x-ndjson, and each
 * line is {"custom": anything}, an event of stream mode custom, or
 * {"result": anything}, the result for the model.
 */
#ifndef AGENT_RUNNER_PROGRESS_H
#define AGENT_RUNNER_PROGRESS_H

#include "job.h"

/* Whether a content type, which may be NULL, is that of replies with progress.
 */
bool runner_progress_is_type(const char *content_type);

/* Reads the complete lines of the reply so far and removes them. */
void runner_progress_take(runner_job_t *job);

/* The reply has ended: reads the last line and finishes the job. */
void runner_progress_finish(runner_job_t *job);

#endif
