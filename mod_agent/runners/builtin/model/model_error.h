/* SPDX-License-Identifier: Apache-2.0 */
/* Words for a model that did not answer. */
#ifndef AGENT_RUNNER_MODEL_ERROR_H
#define AGENT_RUNNER_MODEL_ERROR_H

#include "runners/builtin/graph.h"

/* Problems that are no HTTP status. */
enum {
    RUNNER_MODEL_ERROR_UNREACHABLE = 0,
    RUNNER_MODEL_ERROR_SILENT = -1,
    RUNNER_MODEL_ERROR_CUT = -2,
    RUNNER_MODEL_ERROR_GARBLED = -3
};

typedef struct runner_model_error_t {
    /* An HTTP status, or one of the above. */
    int status;
    /* What the model or libcurl said; NULL when nothing. */
    const char *said;
    /* Calls made. */
    int attempts;
    /* The full URL. */
    const char *url;
} runner_model_error_t;

/*
 * The problem for the run: which model, at which host, what happened, what to
 * check. The model's key is blotted out wherever it was repeated.
 */
void runner_model_error_set(runner_problem_t **problem,
                           const runner_model_error_t *error,
                           const runner_model_t *model, apr_pool_t *pool);

/* The message inside an error body of either vendor; the body itself, cut,
 * when it is none of theirs; NULL when it is empty. In pool. */
const char *runner_model_error_read(const char *body, size_t length,
                                  apr_pool_t *pool);

#endif
