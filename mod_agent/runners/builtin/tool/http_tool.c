/* SPDX-License-Identifier: Apache-2.0 */
/* One tool call over HTTP: the request and the reading of the reply. */
#include "http_tool.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "progress.h"
#include "runners/builtin/base/clean.h"
#include "runners/builtin/base/host.h"
#include "runners/builtin/base/raw.h"
#include "runners/builtin/base/text.h"
#include "runners/builtin/base/value.h"

/* The most bytes of an error page that the model is shown. */
#define ERROR_TEXT_MAX 2000
/* The longest query of a URL. */
#define QUERY_MAX ((size_t)64 * 1024)

static bool is_success(int status)
{
    return status >= 200 && status <= 299;
}

/* The error of a reply that exceeded a limit. */
static const char *describe_excess(const runner_job_t *job)
{
    if (job->reply_size > RUNNER_TOOL_REPLY_MAX) {
        return apr_psprintf(job->jobs->pool,
                            "The tool %s answered with more than %d bytes.",
                            job->name, (int)RUNNER_TOOL_REPLY_MAX);
    }
    return apr_psprintf(job->jobs->pool,
                        "The tools that were called together answered with "
                        "more than %d bytes.",
                        (int)RUNNER_TOOL_REPLIES_MAX);
}

/* A reply with progress becomes output of the run while it arrives, and is not
 * read while that is blocked. */
static bool is_full(void *baton)
{
    const runner_job_t *job = baton;
    const runner_jobs_t *jobs = job->jobs;

    return jobs->is_paused(jobs->baton)
        || (runner_progress_is_type(runner_http_content_type(job->transfer))
            && jobs->is_full(jobs->baton));
}

static bool take_reply(void *baton, int status, const char *bytes,
                       size_t length)
{
    runner_job_t *job = baton;

    job->reply_size += length;
    job->jobs->replies_size += length;
    if (job->reply_size > RUNNER_TOOL_REPLY_MAX
        || job->jobs->replies_size > RUNNER_TOOL_REPLIES_MAX) {
        job->has_excess = true;
        return false;
    }
    job->jobs->kept_size += length;
    agent_buffer_append(&job->reply, bytes, length);
    if (is_success(status)
        && runner_progress_is_type(runner_http_content_type(job->transfer))) {
        runner_progress_take(job);
    }
    return true;
}

static json_object *describe_reply(const runner_reply_t *reply,
                                   apr_pool_t *pool)
{
    json_object *artifact = json_object_new_object();

    if (reply->status > 0) {
        runner_value_add_integer(artifact, "http_status", reply->status);
    }
    if (reply->content_type != NULL) {
        runner_value_add_text(artifact, "content_type",
                              runner_clean_text(reply->content_type,
                                                strlen(reply->content_type),
                                                NULL, pool));
    }
    return agent_json_own(artifact, pool);
}

static const char *describe_timeout(const runner_job_t *job)
{
    return apr_psprintf(job->jobs->pool,
                        "The tool %s did not answer within %" APR_TIME_T_FMT
                        " ms.",
                        job->name, apr_time_as_msec(job->tool->timeout));
}

static void finish_reply(runner_job_t *job, const runner_reply_t *reply,
                         apr_pool_t *pool)
{
    const char *text = runner_clean_text(agent_buffer_text(&job->reply),
                                         agent_buffer_length(&job->reply), NULL,
                                         pool);

    if (reply->has_timed_out) {
        runner_job_finish(job, true, describe_timeout(job));
    }
    else if (job->has_excess) {
        runner_job_finish(job, true, describe_excess(job));
    }
    else if (reply->failure != NULL) {
        runner_job_finish(job, true,
                          apr_psprintf(pool,
                                       "The tool %s cannot be reached: %s.",
                                       job->name, reply->failure));
    }
    else if (!is_success(reply->status)) {
        runner_job_finish(
            job, true,
            apr_psprintf(pool, "The tool %s failed with HTTP status %d: %s",
                         job->name, reply->status,
                         runner_text_shorten(text, ERROR_TEXT_MAX, pool)));
    }
    else if (runner_progress_is_type(reply->content_type)) {
        runner_progress_finish(job);
    }
    else {
        runner_job_finish(job, false, text);
    }
}

static void end_reply(void *baton, const runner_reply_t *reply)
{
    runner_job_t *job = baton;
    runner_jobs_t *jobs = job->jobs;
    apr_pool_t *scratch;

    job->artifact = describe_reply(reply, jobs->pool);
    /* In a scratch pool, since the message has a copy of the text. */
    apr_pool_create(&scratch, jobs->pool);
    finish_reply(job, reply, scratch);
    apr_pool_destroy(scratch);
    agent_buffer_clear(&job->reply);
    jobs->on_reply(jobs);
}

/* False when the query becomes longer than QUERY_MAX. */
static bool append_encoded(agent_buffer_t *query, const char *text)
{
    char *encoded;
    bool fits;

    if (strlen(text) > QUERY_MAX) {
        return false;
    }
    encoded = curl_easy_escape(NULL, text, 0);
    fits = encoded != NULL
        && agent_buffer_length(query) + strlen(encoded) <= QUERY_MAX;
    if (fits) {
        agent_buffer_append(query, encoded, strlen(encoded));
    }
    curl_free(encoded);
    return fits;
}

/* Appends the arguments to the query of the URL. In one buffer: curl_url_set()
 * copies the whole query for each parameter that it appends. */
static bool append_arguments(agent_buffer_t *query, json_object *arguments,
                             apr_pool_t *scratch)
{
    const char *at = runner_raw_text(arguments, scratch);
    agent_member_t member;

    while (agent_raw_member_next(&member, &at)) {
        agent_raw_t value = {member.value, member.value_length};

        agent_buffer_append(query, "&", agent_buffer_length(query) > 0 ? 1 : 0);
        if (!append_encoded(query, agent_raw_member_key(&member, scratch))) {
            return false;
        }
        agent_buffer_append(query, "=", 1);
        if (!append_encoded(query, runner_raw_print(value, scratch))) {
            return false;
        }
    }
    return true;
}

/* NULL when the arguments are too long for a URL. */
static const char *make_query_url(const runner_job_t *job)
{
    CURLU *url = curl_url();
    char *text = NULL;
    const char *result = NULL;
    apr_pool_t *scratch;
    agent_buffer_t query;

    agent_buffer_init(&query, job->jobs->pool);
    curl_url_set(url, CURLUPART_URL, job->tool->url, 0);
    if (curl_url_get(url, CURLUPART_QUERY, &text, 0) == CURLUE_OK) {
        agent_buffer_append(&query, text, strlen(text));
        curl_free(text);
        text = NULL;
    }
    apr_pool_create(&scratch, job->jobs->pool);
    if (append_arguments(&query, job->args, scratch)
        && curl_url_set(url, CURLUPART_QUERY,
                        agent_buffer_length(&query) > 0
                            ? agent_buffer_text(&query)
                            : NULL,
                        0)
            == CURLUE_OK
        && curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK) {
        result = apr_pstrdup(job->jobs->pool, text);
    }
    apr_pool_destroy(scratch);
    curl_free(text);
    curl_url_cleanup(url);
    return result;
}

static void add_header(runner_request_t *request, const runner_job_t *job,
                       const char *name, const char *value)
{
    APR_ARRAY_PUSH(request->headers, const char *) = apr_pstrcat(
        job->jobs->pool, name, ": ", value, NULL);
}

static void init_request(runner_request_t *request, runner_job_t *job)
{
    memset(request, 0, sizeof(*request));
    request->run = job->jobs->transfers;
    /* The host of the configured URL: a client's arguments must not add a host
     * to the schedule. */
    request->host = runner_host_read(job->tool->url, job->jobs->pool);
    request->method = job->tool->method;
    request->url = job->tool->url;
    request->timeout = job->tool->timeout;
    request->is_once = true;
    request->is_full = is_full;
    request->on_bytes = take_reply;
    request->on_end = end_reply;
    request->baton = job;
    request->headers = apr_array_make(job->jobs->pool, 6, sizeof(const char *));
    add_header(request, job, "Accept",
               "application/json, application/x-ndjson, text/*;q=0.9");
    add_header(request, job, "User-Agent", "agent-runner");
    add_header(request, job, "X-Agent-Run-Id", job->jobs->run_id);
    add_header(request, job, "X-Agent-Thread-Id", job->jobs->thread_id);
}

void runner_http_tool_start(runner_job_t *job)
{
    apr_pool_t *pool = job->jobs->pool;
    const char *failure = NULL;
    runner_request_t request;

    init_request(&request, job);
    if (strcmp(request.method, "GET") == 0) {
        request.url = make_query_url(job);
        if (request.url == NULL) {
            runner_job_finish(
                job, true,
                apr_pstrcat(pool, "The arguments of the tool ", job->name,
                            " are too long for a URL (64 KB).", NULL));
            return;
        }
    }
    else {
        request.body = runner_raw_text(job->args, pool);
        request.body_length = strlen(request.body);
        add_header(&request, job, "Content-Type", "application/json");
    }
    job->transfer = runner_http_start(job->jobs->http, &request, &failure,
                                      pool);
    if (job->transfer == NULL) {
        runner_job_finish(job, true,
                          apr_pstrcat(pool, "The tool ", job->name,
                                      " cannot be called: ", failure, ".",
                                      NULL));
    }
}
