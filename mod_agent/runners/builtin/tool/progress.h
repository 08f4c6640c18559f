/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool over HTTP that tells how far it is: its reply is of the type
 * application/x-ndjson, and each line is {"custom": anything}, an event of
 * stream mode custom, or {"result": anything}, what the model reads.
 */
#ifndef AGENT_RUNNER_PROGRESS_H
#define AGENT_RUNNER_PROGRESS_H

#include "jobs.h"

/* Whether a reply of this type (NULL: none) is such lines. */
bool runner_progress_is_type(const char *content_type);

/* Takes the whole lines out of the reply that has arrived so far, and tells
 * what they say. */
void runner_progress_take(runner_job_t *job);

/* The reply has ended: takes the rest and finishes the job. */
void runner_progress_finish(runner_job_t *job);

#endif
