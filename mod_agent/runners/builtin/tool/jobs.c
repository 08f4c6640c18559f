/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and collecting the tool calls of one AI message. */
#include "jobs.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "builtin.h"
#include "core/json.h"
#include "http_tool.h"
#include "runners/builtin/base/text.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/message.h"
#include "runners/builtin/message/lazy.h"
#include "runners/builtin/model/answer.h"

/* The most bytes of malformed arguments that the model is shown. */
#define EXCERPT_MAX 400

static void refuse_args(runner_job_t *job)
{
    runner_job_finish(
        job, true,
        apr_pstrcat(job->jobs->pool, "The arguments are not a JSON object: ",
                    runner_text_shorten(job->invalid_args, EXCERPT_MAX,
                                        job->jobs->pool),
                    "\nCall the tool again with valid arguments.", NULL));
}

static void refuse_name(runner_job_t *job)
{
    apr_pool_t *pool = job->jobs->pool;
    const char *names = runner_graph_list_tools(job->jobs->graph, pool);

    runner_job_finish(job, true,
                      apr_pstrcat(pool, "There is no tool ", job->name,
                                  ". The tools are: ", *names ? names : "none",
                                  ".", NULL));
}

static void call_tool(runner_job_t *job)
{
    job->is_called = true;
    job->jobs->on_change(job->jobs->baton, job);
    if (job->tool->builtin != NULL) {
        job->tool->builtin->run(job);
    }
    else {
        runner_http_tool_start(job);
    }
}

static void start_job(runner_job_t *job)
{
    job->tool = runner_graph_find_tool(job->jobs->graph, job->name);
    if (job->tool == NULL) {
        refuse_name(job);
    }
    else if (job->args == NULL) {
        refuse_args(job);
    }
    else {
        call_tool(job);
    }
}

/* The last message that is not a tool message; NULL when it is not an AI
 * message. *results is the index after it. */
static json_object *find_caller(json_object *messages, size_t *results,
                                apr_pool_t *pool)
{
    size_t i = json_object_array_length(messages);

    while (i > 0) {
        json_object *message = json_object_array_get_idx(messages, i - 1);

        if (!runner_message_is(message, "tool")) {
            *results = i;
            return runner_message_is(message, "ai")
                ? runner_lazy_open(message, pool)
                : NULL;
        }
        i--;
    }
    return NULL;
}

/* The ids of the calls whose results are the messages from that index on. */
static apr_hash_t *find_answered(json_object *messages, size_t from,
                                 apr_pool_t *pool)
{
    apr_hash_t *answered = apr_hash_make(pool);

    for (size_t i = from; i < json_object_array_length(messages); i++) {
        const char *id = runner_lazy_string(
            json_object_array_get_idx(messages, i), "tool_call_id", "", pool);

        apr_hash_set(answered, id, APR_HASH_KEY_STRING, id);
    }
    return answered;
}

static void add_jobs(runner_jobs_t *jobs, json_object *calls,
                     apr_hash_t *answered)
{
    for (size_t i = 0; i < runner_value_count(calls); i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        const char *id = agent_json_string(call, "id", "");
        json_object *args = agent_json_get(call, "args");
        runner_job_t *job;

        if (apr_hash_get(answered, id, APR_HASH_KEY_STRING) != NULL) {
            continue;
        }
        job = apr_pcalloc(jobs->pool, sizeof(*job));
        job->jobs = jobs;
        job->call_id = id;
        job->name = agent_json_string(call, "name", "");
        job->args = json_object_is_type(args, json_type_object) ? args : NULL;
        job->invalid_args = agent_json_string(call, "args", "");
        agent_buffer_init(&job->reply, jobs->pool);
        APR_ARRAY_PUSH(jobs->list, runner_job_t *) = job;
    }
}

static void start_waiting(runner_jobs_t *jobs)
{
    while (jobs->started < jobs->list->nelts
           && jobs->active < RUNNER_TOOL_ACTIVE_MAX) {
        runner_job_t *job = APR_ARRAY_IDX(jobs->list, jobs->started++,
                                          runner_job_t *);

        jobs->active++;
        start_job(job);
    }
}

static void take_reply(runner_jobs_t *jobs)
{
    start_waiting(jobs);
    if (jobs->unfinished == 0) {
        jobs->on_end(jobs->baton);
    }
}

/* A client may have written the message, so the limit of answer.h is checked
 * here as well. */
static apr_status_t check_count(json_object *caller, runner_problem_t **problem,
                                apr_pool_t *pool)
{
    size_t count = runner_value_count(agent_json_get(caller, "tool_calls"))
        + runner_value_count(agent_json_get(caller, "invalid_tool_calls"));

    if (count <= RUNNER_ANSWER_CALLS_MAX) {
        return APR_SUCCESS;
    }
    return runner_problem_set(problem, pool, "ToolCallLimitExceededError",
                              "The last message has %" APR_SIZE_T_FMT
                              " tool calls; a message may have %d.",
                              count, RUNNER_ANSWER_CALLS_MAX);
}

apr_status_t runner_jobs_start(runner_jobs_t *jobs, json_object *messages,
                               runner_problem_t **problem)
{
    size_t results = 0;
    json_object *caller = find_caller(messages, &results, jobs->pool);
    apr_hash_t *answered;

    jobs->on_reply = take_reply;
    jobs->list = apr_array_make(jobs->pool, 4, sizeof(runner_job_t *));
    if (caller == NULL) {
        return APR_SUCCESS;
    }
    if (check_count(caller, problem, jobs->pool) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    answered = find_answered(messages, results, jobs->pool);
    add_jobs(jobs, agent_json_get(caller, "tool_calls"), answered);
    add_jobs(jobs, agent_json_get(caller, "invalid_tool_calls"), answered);
    jobs->unfinished = jobs->list->nelts;
    start_waiting(jobs);
    return APR_SUCCESS;
}

json_object *runner_jobs_messages(const runner_jobs_t *jobs)
{
    json_object *messages = runner_value_list();

    for (int i = 0; i < jobs->list->nelts; i++) {
        runner_job_t *job = APR_ARRAY_IDX(jobs->list, i, runner_job_t *);

        if (job->is_done) {
            json_object_array_add(messages, runner_value_share(job->message));
        }
    }
    return messages;
}
