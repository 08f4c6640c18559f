/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a delivery; see outcome.h. */
#include "outcome.h"

#include <stdbool.h>
#include <string.h>

#include <apr_strings.h>

/* Longest reason that is stored and logged. */
#define REASON_BYTES 300

static bool is_worth_another_try(int status)
{
    return status == 408 || status == 425 || status == 429 || status >= 500;
}

/* Cuts the text and replaces bytes that are not printable: an error message may
 * quote the receiver's certificate. */
static const char *print_failure(const char *failure, apr_pool_t *pool)
{
    char *text = apr_pstrndup(pool, failure, REASON_BYTES);

    for (char *c = text; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    return text;
}

agent_webhook_outcome_t agent_webhook_outcome(
    const agent_webhook_response_t *response, apr_pool_t *pool)
{
    agent_webhook_outcome_t outcome = {"delivered", NULL, 0};

    /* 1xx precedes the final status. */
    if (response->status < 200) {
        outcome.result = "failed";
        outcome.reason = print_failure(
            response->failure != NULL ? response->failure : "no answer", pool);
    }
    else if (response->status >= 300) {
        bool again = is_worth_another_try(response->status);

        outcome.result = again ? "failed" : "refused";
        outcome.reason = apr_psprintf(
            pool, "status %d%s", response->status,
            response->status < 400 ? ": redirects are not followed" : "");
        outcome.wait = again ? response->retry_after : 0;
    }
    return outcome;
}
