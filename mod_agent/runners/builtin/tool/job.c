/* SPDX-License-Identifier: Apache-2.0 */
/* Ending one call of a tool. */
#include "job.h"

#include "core/json.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/message.h"

void runner_job_finish(runner_job_t *job, bool is_error, const char *content)
{
    job->is_done = true;
    job->has_failed = is_error;
    job->jobs->active--;
    job->jobs->unfinished--;
    job->message = agent_json_own(
        runner_message_new_tool(job->call_id, job->name, content,
                                runner_value_share(job->artifact), is_error),
        job->jobs->pool);
    if (job->is_called) {
        job->jobs->on_change(job->jobs->baton, job);
    }
}
