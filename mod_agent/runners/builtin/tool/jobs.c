/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of one AI message and the built-in tools; see tool.h. */
#include "jobs.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "runners/builtin/model/answer.h"
#include "calculator.h"
#include "core/json.h"
#include "runners/builtin/message/message.h"
#include "runners/builtin/base/text.h"
#include "runners/builtin/base/value.h"

#define EXPRESSION_MAX 1000
/* How much of a malformed argument text a model is shown. */
#define EXCERPT_MAX 400

typedef struct builtin_t {
    const char *name;
    runner_tool_kind_t kind;
    const char *description;
    const char *schema;
} builtin_t;

static const builtin_t builtins[] = {
    {"clock", RUNNER_TOOL_CLOCK,
     "Tells the current date and time in UTC (ISO 8601).",
     "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}"},
    {"calculator", RUNNER_TOOL_CALCULATOR,
     "Computes an arithmetic expression of decimal numbers, + - * / % ^ and "
     "parentheses.",
     "{\"type\":\"object\",\"properties\":{\"expression\":{\"type\":"
     "\"string\",\"description\":\"For example: 2 * (3 + 4)\"}},"
     "\"required\":[\"expression\"],\"additionalProperties\":false}"},
};

bool runner_tool_read_builtin(runner_tool_t *tool, apr_pool_t *pool)
{
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
        if (strcmp(builtins[i].name, tool->name) == 0) {
            tool->kind = builtins[i].kind;
            tool->description = builtins[i].description;
            tool->schema = runner_value_parse(builtins[i].schema,
                                              strlen(builtins[i].schema), pool);
            return true;
        }
    }
    return false;
}

void runner_job_finish(runner_job_t *job, bool is_error, const char *content)
{
    job->is_done = true;
    job->jobs->active--;
    job->jobs->waiting--;
    job->message = agent_json_own(
        runner_message_tool(job->call_id, job->name, content,
                            runner_value_share(job->artifact), is_error),
        job->jobs->pool);
    if (job->is_called) {
        job->jobs->on_change(job->jobs->baton, job);
    }
}

static void run_clock(runner_job_t *job)
{
    apr_time_exp_t now;

    apr_time_exp_gmt(&now, apr_time_now());
    runner_job_finish(
        job, false,
        apr_psprintf(job->jobs->pool, "%04d-%02d-%02dT%02d:%02d:%02d+00:00",
                     now.tm_year + 1900, now.tm_mon + 1, now.tm_mday,
                     now.tm_hour, now.tm_min, now.tm_sec));
}

static void run_calculator(runner_job_t *job)
{
    const char *expression = agent_json_string(job->args, "expression", NULL);
    const char *result;

    if (expression == NULL) {
        runner_job_finish(job, true,
                          "The argument \"expression\" must be a text.");
        return;
    }
    if (strlen(expression) > EXPRESSION_MAX) {
        runner_job_finish(job, true,
                          "The expression is longer than 1000 characters.");
        return;
    }
    if (runner_calculator_run(&result, expression, job->jobs->pool)
        != APR_SUCCESS) {
        runner_job_finish(job, true,
                          apr_pstrcat(job->jobs->pool,
                                      "The expression cannot be computed: ",
                                      result, ".", NULL));
        return;
    }
    runner_job_finish(job, false, result);
}

static const char *list_tools(const runner_graph_t *graph, apr_pool_t *pool)
{
    const char *names = "";

    /* Bounded: the tools of the configuration. */
    for (int i = 0; i < graph->tools->nelts; i++) {
        names = apr_pstrcat(
            pool, names, i == 0 ? "" : ", ",
            APR_ARRAY_IDX(graph->tools, i, runner_tool_t *)->name, NULL);
    }
    return *names ? names : "none";
}

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

    runner_job_finish(
        job, true,
        apr_pstrcat(pool, "There is no tool ", job->name, ". The tools are: ",
                    list_tools(job->jobs->graph, pool), ".", NULL));
}

static void call_tool(runner_job_t *job)
{
    job->is_called = true;
    job->jobs->on_change(job->jobs->baton, job);
    if (job->tool->kind == RUNNER_TOOL_CLOCK) {
        run_clock(job);
    }
    else if (job->tool->kind == RUNNER_TOOL_CALCULATOR) {
        run_calculator(job);
    }
    else {
        runner_job_start_http(job);
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

/* The last message that is no tool's answer, if it is the model's; *answers
 * becomes the index of the first message after it. */
static json_object *find_asking(json_object *messages, size_t *answers)
{
    size_t i = json_object_array_length(messages);

    while (i > 0) {
        json_object *message = json_object_array_get_idx(messages, i - 1);

        if (!runner_message_is(message, "tool")) {
            *answers = i;
            return runner_message_is(message, "ai") ? message : NULL;
        }
        i--;
    }
    return NULL;
}

/* The ids of the calls that the messages from that index on answer. */
static apr_hash_t *find_answered(json_object *messages, size_t from,
                                 apr_pool_t *pool)
{
    apr_hash_t *answered = apr_hash_make(pool);

    for (size_t i = from; i < json_object_array_length(messages); i++) {
        const char *id = agent_json_string(
            json_object_array_get_idx(messages, i), "tool_call_id", "");

        apr_hash_set(answered, id, APR_HASH_KEY_STRING, id);
    }
    return answered;
}

static size_t count_calls(json_object *calls)
{
    return json_object_is_type(calls, json_type_array)
        ? json_object_array_length(calls)
        : 0;
}

static void add_jobs(runner_jobs_t *jobs, json_object *calls,
                     apr_hash_t *answered)
{
    for (size_t i = 0; i < count_calls(calls); i++) {
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
        runner_buffer_init(&job->reply, jobs->pool);
        APR_ARRAY_PUSH(jobs->list, runner_job_t *) = job;
    }
}

void runner_jobs_continue(runner_jobs_t *jobs)
{
    while (jobs->started < jobs->list->nelts
           && jobs->active < RUNNER_TOOL_ACTIVE_MAX) {
        runner_job_t *job = APR_ARRAY_IDX(jobs->list, jobs->started++,
                                          runner_job_t *);

        jobs->active++;
        start_job(job);
    }
}

/* The calls are in the state, where a client may have written them. */
static apr_status_t check_count(json_object *asking, runner_problem_t **problem,
                                apr_pool_t *pool)
{
    size_t count = count_calls(agent_json_get(asking, "tool_calls"))
        + count_calls(agent_json_get(asking, "invalid_tool_calls"));

    if (count <= RUNNER_ANSWER_CALLS_MAX) {
        return APR_SUCCESS;
    }
    return runner_problem_set(problem, pool, "ToolCallLimitExceededError",
                              "The last message asks for %" APR_SIZE_T_FMT
                              " calls of tools; one message may have %d.",
                              count, RUNNER_ANSWER_CALLS_MAX);
}

apr_status_t runner_jobs_start(runner_jobs_t *jobs, json_object *messages,
                               runner_problem_t **problem)
{
    size_t answers = 0;
    json_object *asking = find_asking(messages, &answers);
    apr_hash_t *answered;

    jobs->list = apr_array_make(jobs->pool, 4, sizeof(runner_job_t *));
    if (asking == NULL) {
        return APR_SUCCESS;
    }
    if (check_count(asking, problem, jobs->pool) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    answered = find_answered(messages, answers, jobs->pool);
    add_jobs(jobs, agent_json_get(asking, "tool_calls"), answered);
    add_jobs(jobs, agent_json_get(asking, "invalid_tool_calls"), answered);
    jobs->waiting = jobs->list->nelts;
    runner_jobs_continue(jobs);
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
