/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of a tool. A call that fails has an answer with status "error",
 * which the model reads; it never fails the run.
 */
#ifndef AGENT_RUNNER_JOB_H
#define AGENT_RUNNER_JOB_H

#include <stdbool.h>

#include "core/buffer.h"
#include "runners/builtin/graph.h"
#include "runners/builtin/http.h"

/* The longest reply of a tool over HTTP; of all calls of one message together.
 */
#define RUNNER_TOOL_REPLY_MAX   ((size_t)1024 * 1024)
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
    /* The reply, or all replies together, exceeded the limit above. */
    bool has_excess;
    /* The answer, once it is done; belongs to the pool. */
    json_object *message;
    /* Belongs to the pool; NULL when there is none. */
    json_object *artifact;
    const runner_tool_t *tool;
    runner_transfer_t *transfer;
    agent_buffer_t reply;
    size_t reply_size;
    /* Of a reply in lines (progress.h): bytes already searched for a newline;
     * the last result; the first malformed line. */
    size_t searched;
    const char *result;
    const char *bad_line;
} runner_job_t;

/* The calls of one AI message. Those that are not done end with the pool. */
typedef struct runner_jobs_t {
    apr_pool_t *pool;
    const runner_graph_t *graph;
    runner_http_t *http;
    runner_schedule_run_t *transfers;
    const char *run_id;
    const char *thread_id;
    /* runner_job_t *, in the order of the model. */
    apr_array_header_t *list;
    /* Jobs that have been started; of these, jobs that are not done; all jobs
     * that are not done. */
    int started;
    int active;
    int waiting;
    /* Bytes of all replies so far. */
    size_t replies_size;
    /* Bytes of them that the answers keep. */
    size_t kept_size;
    /* A tool is called, or has answered (job->is_done). */
    void (*on_change)(void *baton, const runner_job_t *job);
    /* A tool reports progress; data is borrowed. */
    void (*on_custom)(void *baton, json_object *data);
    /* True while the run's output is blocked: no progress is read. */
    bool (*is_full)(void *baton);
    /* True while other replies have taken the memory: no reply is read. */
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
