/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages for model calls that failed. */
#ifndef AGENT_RUNNER_MODEL_ERROR_H
#define AGENT_RUNNER_MODEL_ERROR_H

#include "runners/builtin/base/problem.h"
#include "runners/builtin/graph.h"

/* Errors without an HTTP status. */
enum {
    RUNNER_MODEL_ERROR_UNREACHABLE = 0,
    RUNNER_MODEL_ERROR_TIMEOUT = -1,
    RUNNER_MODEL_ERROR_CUT = -2,
    RUNNER_MODEL_ERROR_FORMAT = -3
};

typedef struct runner_model_error_t {
    /* An HTTP status, or one of the above. */
    int status;
    /* The message of the model or of libcurl; NULL when there is none. */
    const char *detail;
    /* The number of attempts. */
    int attempts;
    /* The full URL. */
    const char *url;
} runner_model_error_t;

/*
 * Sets the problem of the run: the model, its host, the error, what to check.
 * The model's key is replaced by *** wherever the detail repeats it.
 */
void runner_model_error_set(runner_problem_t **problem,
                            const runner_model_error_t *error,
                            const runner_model_t *model, apr_pool_t *pool);

/* The message in an error body of either vendor; an excerpt of any other body;
 * NULL when it is empty. In pool. */
const char *runner_model_error_read(const char *body, size_t length,
                                    apr_pool_t *pool);

#endif
