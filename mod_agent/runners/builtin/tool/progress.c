/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the lines of replies with progress. */
#include "progress.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/clean.h"
#include "runners/builtin/base/raw.h"
#include "runners/builtin/base/text.h"

#define TYPE "application/x-ndjson"
/* The most bytes of a malformed line that the model is shown. */
#define EXCERPT_MAX 400

bool runner_progress_is_type(const char *content_type)
{
    size_t length = strlen(TYPE);

    return content_type != NULL && strncasecmp(content_type, TYPE, length) == 0
        && (content_type[length] == '\0' || content_type[length] == ';'
            || apr_isspace(content_type[length]));
}

static bool is_blank(const char *line, size_t length)
{
    while (length > 0 && apr_isspace(*line)) {
        line++;
        length--;
    }
    return length == 0;
}

static void read_line(runner_job_t *job, const char *text, size_t length,
                      apr_pool_t *scratch)
{
    apr_pool_t *pool = job->jobs->pool;
    agent_raw_t line = runner_raw_read(text, length, scratch);
    agent_raw_t custom = agent_raw_get(line, "custom");
    agent_raw_t result = agent_raw_get(line, "result");
    bool is_custom = agent_raw_kind(custom) > AGENT_RAW_NULL;

    if (is_custom) {
        job->jobs->on_progress(
            job->jobs->baton, job,
            agent_json_own(runner_raw_value(custom), scratch));
    }
    if (agent_raw_kind(result) != AGENT_RAW_NONE) {
        job->result = runner_raw_print(result, pool);
        job->jobs->kept_size += strlen(job->result);
    }
    else if (!is_custom && job->bad_line == NULL) {
        job->bad_line = apr_pstrdup(
            pool,
            runner_text_shorten(runner_clean_text(text, length, NULL, scratch),
                                EXCERPT_MAX, scratch));
    }
}

static void take_line(runner_job_t *job, const char *text, size_t length)
{
    apr_pool_t *scratch;

    if (is_blank(text, length)) {
        return;
    }
    apr_pool_create(&scratch, job->jobs->pool);
    read_line(job, text, length, scratch);
    apr_pool_destroy(scratch);
}

/* Takes time linear in the reply for pieces of any size: each byte is searched
 * once. */
void runner_progress_take(runner_job_t *job)
{
    const char *bytes = agent_buffer_text(&job->reply);
    size_t begin = 0;
    const char *end;

    while ((end = memchr(bytes + job->searched, '\n',
                         agent_buffer_length(&job->reply) - job->searched))
           != NULL) {
        take_line(job, bytes + begin, (size_t)(end - bytes) - begin);
        begin = (size_t)(end - bytes) + 1;
        job->searched = begin;
    }
    agent_buffer_consume(&job->reply, begin);
    job->jobs->kept_size -= begin;
    job->searched = agent_buffer_length(&job->reply);
}

void runner_progress_finish(runner_job_t *job)
{
    apr_pool_t *pool = job->jobs->pool;

    take_line(job, agent_buffer_text(&job->reply),
              agent_buffer_length(&job->reply));
    if (job->bad_line != NULL) {
        runner_job_finish(
            job, true,
            apr_pstrcat(pool, "The tool ", job->name,
                        " answered with a line that has neither \"custom\" "
                        "nor \"result\": ",
                        job->bad_line, NULL));
    }
    else if (job->result == NULL) {
        runner_job_finish(job, true,
                          apr_pstrcat(pool, "The tool ", job->name,
                                      " ended its reply without a result.",
                                      NULL));
    }
    else {
        runner_job_finish(job, false, job->result);
    }
}
