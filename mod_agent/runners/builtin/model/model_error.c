/* SPDX-License-Identifier: Apache-2.0 */
/* The table of error messages for failed model calls. */
#include "model_error.h"

#include <string.h>

#include <apr_strings.h>

#include "core/buffer.h"
#include "core/json.h"
#include "runners/builtin/base/clean.h"
#include "runners/builtin/base/host.h"
#include "runners/builtin/base/text.h"
#include "runners/builtin/base/value.h"

#define EXCERPT_MAX 300
/* A shorter key is not a secret, and may be a part of common words. */
#define KEY_LENGTH_MIN 6

typedef struct row_t {
    int status;
    const char *name;
    /* After "The model X at HOST ". */
    const char *happened;
    const char *advice;
} row_t;

static const row_t rows[] = {
    {RUNNER_MODEL_ERROR_UNREACHABLE, "APIConnectionError", "cannot be reached",
     "Check AgentModelURL and this server's route to that host."},
    {RUNNER_MODEL_ERROR_TIMEOUT, "APITimeoutError", "sent nothing for too long",
     "Check the host, or raise AgentModelTimeout."},
    {RUNNER_MODEL_ERROR_INCOMPLETE, "APIConnectionError", "cut its answer off",
     "Run again; the partial answer is not in the state."},
    {RUNNER_MODEL_ERROR_FORMAT, "APIResponseError",
     "did not answer in the form of its API",
     "Check that AgentModelURL is the address of such an API."},
    {400, "BadRequestError", "refused the request",
     "Check the messages of the thread and the name in AgentModel."},
    {401, "AuthenticationError", "refused the key", "Check AgentModelKeyFile."},
    {403, "PermissionDeniedError", "does not permit the request",
     "Check what the key in AgentModelKeyFile may do."},
    {404, "NotFoundError", "does not know the model or the address",
     "Check the name in AgentModel and AgentModelURL."},
    {413, "RequestTooLargeError", "finds the conversation too large",
     "Begin a new thread or remove messages."},
    {429, "RateLimitError", "is over its rate limit or out of credit",
     "Try again later or check the account."},
    {529, "OverloadedError", "is overloaded", "Try again later."},
};

static const row_t other_refusal = {0, "APIStatusError", "refused the request",
                                    "Check AgentModelURL and AgentModel."};
static const row_t redirect = {0, "APIStatusError",
                               "sends the request to another address",
                               "Give AgentModelURL that address: redirects "
                               "are not followed."};
static const row_t failure = {0, "InternalServerError", "failed",
                              "Try again later."};

static const row_t *find_row(int status)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == status) {
            return &rows[i];
        }
    }
    if (status >= 500) {
        return &failure;
    }
    return status >= 300 && status < 400 ? &redirect : &other_refusal;
}

/* "HTTP 429 after 4 attempts: Too many requests" */
static const char *describe_details(const runner_model_error_t *error,
                                    const char *detail, apr_pool_t *pool)
{
    const char *status = error->status > 0
        ? apr_psprintf(pool, "HTTP %d", error->status)
        : "";
    const char *attempts = error->attempts > 1
        ? apr_psprintf(pool, "%safter %d attempts", *status ? " " : "",
                       error->attempts)
        : "";
    const char *gap = (*status || *attempts) && *detail ? ": " : "";
    const char *details = apr_pstrcat(pool, status, attempts, gap, detail,
                                      NULL);

    return *details ? apr_pstrcat(pool, " (", details, ")", NULL) : "";
}

const char *runner_model_error_hide_key(const char *text,
                                        const runner_model_t *model,
                                        apr_pool_t *pool)
{
    const char *key = model->key;
    agent_buffer_t hidden;
    const char *found;

    if (text == NULL || key == NULL || strlen(key) < KEY_LENGTH_MIN) {
        return text;
    }
    agent_buffer_init(&hidden, pool);
    while ((found = strstr(text, key)) != NULL) {
        agent_buffer_append(&hidden, text, (size_t)(found - text));
        agent_buffer_append(&hidden, "***", 3);
        text = found + strlen(key);
    }
    agent_buffer_append(&hidden, text, strlen(text));
    return agent_buffer_text(&hidden);
}

void runner_model_error_set(runner_problem_t **problem,
                            const runner_model_error_t *error,
                            const runner_model_t *model, apr_pool_t *pool)
{
    const row_t *row = find_row(error->status);
    const char *detail = error->detail ? error->detail : "";

    detail = runner_text_shorten(detail, EXCERPT_MAX, pool);
    runner_problem_set(problem, pool, row->name, "The model %s at %s %s%s. %s",
                       model->label, runner_host_read(error->url, pool),
                       row->happened, describe_details(error, detail, pool),
                       row->advice);
}

const char *runner_model_error_read(const char *body, size_t length,
                                    const runner_model_t *model,
                                    apr_pool_t *pool)
{
    json_object *value = runner_value_parse(body, length, pool);
    json_object *error = agent_json_get(value, "error");
    const char *message = agent_json_string(error, "message", NULL);

    if (message == NULL && json_object_is_type(error, json_type_string)) {
        message = json_object_get_string(error);
    }
    if (message == NULL && length == 0) {
        return NULL;
    }
    if (message == NULL) {
        message = runner_clean_text(body, length, NULL, pool);
    }
    return runner_text_shorten(
        runner_model_error_hide_key(message, model, pool), EXCERPT_MAX, pool);
}
