/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calling tools. A tool that fails answers with a message of status "error",
 * which the model reads; it never fails the run.
 */
#ifndef AGENT_RUNNER_JOBS_H
#define AGENT_RUNNER_JOBS_H

#include <stdbool.h>

#include "core/buffer.h"
#include "runners/builtin/graph.h"
#include "runners/builtin/http.h"

/* The longest reply of an HTTP tool, and all replies of one message's calls
 * together. */
#define RUNNER_TOOL_REPLY_MAX   ((size_t)1024 * 1024)
#define RUNNER_TOOL_REPLIES_MAX ((size_t)4 * 1024 * 1024)
/* Calls of one run that are under way at once; the others wait. */
#define RUNNER_TOOL_ACTIVE_MAX 16

/* One call of a tool and its result. */
typedef struct runner_job_t {
    struct runner_jobs_t *jobs;
    const char *call_id;
    const char *name;
    /* NULL when the model's arguments were no JSON object. */
    json_object *args;
    /* The arguments as the model wrote them, when they were none. */
    const char *invalid_args;
    /* There is such a tool, and it has been called. */
    bool is_called;
    bool is_done;
    /* It, or all together, answered with too much. */
    bool has_excess;
    /* The answer, when it is done; belongs to the pool. */
    json_object *message;
    /* Belongs to the pool; NULL when there is none. */
    json_object *artifact;
    const runner_tool_t *tool;
    runner_transfer_t *transfer;
    runner_buffer_t reply;
    size_t reply_size;
    /* Of a reply in lines (progress.h): bytes of reply without a newline. */
    size_t searched;
    const char *result;
    const char *bad_line;
} runner_job_t;

/* All calls of one AI message; those that are not done end with the pool. */
typedef struct runner_jobs_t {
    apr_pool_t *pool;
    const runner_graph_t *graph;
    runner_http_t *http;
    const char *run_id;
    const char *thread_id;
    /* runner_job_t *, in the order of the model. */
    apr_array_header_t *list;
    /* Jobs of list that have been started, those of them that are under way,
     * and all that are not done. */
    int started;
    int active;
    int waiting;
    /* Bytes of all replies so far. */
    size_t replies_size;
    /* A tool is called, or (job->is_done) has answered. */
    void (*on_change)(void *baton, const runner_job_t *job);
    /* A tool that works has something to say; data is borrowed. */
    void (*on_custom)(void *baton, json_object *data);
    /* While it says so, a tool that tells how far it is has to wait. */
    bool (*is_full)(void *baton);
    /* Called when the last of the jobs that had to wait is done. */
    void (*on_end)(void *baton);
    void *baton;
} runner_jobs_t;

/* Fills in what is known of the built-in tool of that name; false when there
 * is none. */
bool runner_tool_read_builtin(runner_tool_t *tool, apr_pool_t *pool);

/*
 * Makes a job of every call of the last AI message that has no answer yet, and
 * starts as many as may be under way at once. All are done when jobs->waiting
 * is 0 afterwards; else on_end comes later. The caller zeroes jobs and sets its
 * other members. APR_EGENERAL: the message asks for too many calls, none is
 * started, *problem says so.
 */
apr_status_t runner_jobs_start(runner_jobs_t *jobs, json_object *messages,
                               runner_problem_t **problem);

/* Starts what may be started now; for httptool.c, after the end of a job. */
void runner_jobs_continue(runner_jobs_t *jobs);

/* The answers of the jobs that are done, in order: an array of messages. */
json_object *runner_jobs_messages(const runner_jobs_t *jobs);

/* Does one call over HTTP; httptool.c. */
void runner_job_start_http(runner_job_t *job);

/* A job has its result; content must be fit for the protocol. */
void runner_job_finish(runner_job_t *job, bool is_error, const char *content);

#endif
