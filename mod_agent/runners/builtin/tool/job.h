/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of a tool. A call that fails has a result with status "error", which
 * the model reads; it never fails the run.
 */
#ifndef AGENT_RUNNER_JOB_H
#define AGENT_RUNNER_JOB_H

#include <stdbool.h>

#include "core/buffer.h"
#include "runners/builtin/base/graph.h"
#include "runners/builtin/io/http.h"

/* The longest reply of a tool over HTTP, in bytes. */
#define RUNNER_TOOL_REPLY_MAX ((size_t)1024 * 1024)
/* The most bytes of the replies to all calls of a message. */
#define RUNNER_TOOL_REPLIES_MAX ((size_t)4 * 1024 * 1024)

typedef struct runner_job_t {
    struct runner_jobs_t *jobs;
    const char *call_id;
    const char *name;
    /* NULL when the model's arguments are not a JSON object. */
    json_object *args;
    /* The text of such arguments. */
    const char *invalid_args;
    /* The tool exists and has been called. */
    bool is_called;
    bool is_done;
    /* The answer is an error. */
    bool has_failed;
    /* The reply, or all replies together, exceeded the limit above. */
    bool has_excess;
    /* The result, once the job is done; belongs to the pool of jobs. */
    json_object *message;
    /* Belongs to the pool of jobs; NULL when there is none. */
    json_object *artifact;
    const runner_tool_t *tool;
    runner_transfer_t *transfer;
    agent_buffer_t reply;
    size_t reply_size;
    /* The rest is for a reply with progress (progress.h). Bytes of the reply
     * that were searched for a newline. */
    size_t searched;
    /* The last result; NULL when there is none. */
    const char *result;
    /* The first malformed line; NULL when there is none. */
    const char *bad_line;
} runner_job_t;

/* The calls of one AI message. Destroying the pool cancels those that are not
 * done. */
typedef struct runner_jobs_t {
    apr_pool_t *pool;
    const runner_graph_t *graph;
    runner_http_t *http;
    runner_schedule_run_t *transfers;
    const char *run_id;
    const char *thread_id;
    /* runner_job_t *, in the order of the message. */
    apr_array_header_t *list;
    /* The number of jobs that were started. */
    int started;
    /* The number of jobs that were started and are not done. */
    int active;
    /* The number of jobs that are not done, started or not. */
    int unfinished;
    /* Bytes of all replies so far. */
    size_t replies_size;
    /* Bytes of replies and results in memory. */
    size_t kept_size;
    /* A tool is called, or is done (job->is_done). */
    void (*on_change)(void *baton, const runner_job_t *job);
    /* A tool reports progress; data is borrowed. */
    void (*on_progress)(void *baton, const runner_job_t *job,
                        json_object *data);
    /* True while the run's output is blocked: no progress is read. */
    bool (*is_full)(void *baton);
    /* True while the replies of other runs take the memory: no reply is read.
     */
    bool (*is_paused)(void *baton);
    /* The last job is done, and it was not done in runner_jobs_start(). */
    void (*on_end)(void *baton);
    void *baton;
    /* A transfer has ended, and its job is done: set by runner_jobs_start(). */
    void (*on_reply)(struct runner_jobs_t *jobs);
} runner_jobs_t;

/* Ends a job with its result. content must be clean (base/clean.h). */
void runner_job_finish(runner_job_t *job, bool is_error, const char *content);

#endif
