/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages for model calls that failed. */
#ifndef AGENT_RUNNER_MODEL_ERROR_H
#define AGENT_RUNNER_MODEL_ERROR_H

#include "runners/builtin/base/graph.h"
#include "runners/builtin/base/problem.h"

/* Errors without an HTTP status. */
enum {
    RUNNER_MODEL_ERROR_UNREACHABLE = 0,
    RUNNER_MODEL_ERROR_TIMEOUT = -1,
    /* The stream ended before the answer. */
    RUNNER_MODEL_ERROR_INCOMPLETE = -2,
    /* The reply is not in the format of the API, or exceeds a limit. */
    RUNNER_MODEL_ERROR_FORMAT = -3
};

typedef struct runner_model_error_t {
    /* An HTTP status, or one of the above. */
    int status;
    /* The message of the server, without the key, or of libcurl; NULL when
     * there is none. */
    const char *detail;
    /* The number of attempts. */
    int attempts;
    /* The URL of the request. */
    const char *url;
} runner_model_error_t;

/* Sets the problem of the run: the model, its host, the error, what to check.
 */
void runner_model_error_set(runner_problem_t **problem,
                            const runner_model_error_t *error,
                            const runner_model_t *model, apr_pool_t *pool);

/* The text with the model's key, wherever it repeats it, replaced by ***: text
 * itself or in pool. text may be NULL. For every text of a server that is
 * logged or becomes a detail; to be called before the text is shortened, which
 * may leave a part of the key. */
const char *runner_model_error_hide_key(const char *text,
                                        const runner_model_t *model,
                                        apr_pool_t *pool);

/* The message in an error body of either vendor; an excerpt of any other body;
 * NULL when it is empty. In pool, without the model's key. */
const char *runner_model_error_read(const char *body, size_t length,
                                    const runner_model_t *model,
                                    apr_pool_t *pool);

#endif
