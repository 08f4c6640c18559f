/* SPDX-License-Identifier: Apache-2.0 */
/* What the answer of a webhook's receiver means; see webhook_judge.h. */
#include "outcome.h"

#include <string.h>

#include <apr_strings.h>

/* Longest reason that is stored and logged. */
#define REASON_BYTES 300

static bool is_worth_another_try(int status)
{
    return status == 408 || status == 425 || status == 429 || status >= 500;
}

/* A receiver's certificate may say anything in an error message. */
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

agent_webhook_verdict_t agent_webhook_judge(
    const agent_webhook_answer_t *answer, apr_pool_t *pool)
{
    agent_webhook_verdict_t verdict = {"delivered", NULL, 0};

    /* What comes before the final status is none (1xx). */
    if (answer->status < 200) {
        verdict.outcome = answer->is_final ? "refused" : "failed";
        verdict.reason = print_failure(
            answer->failure != NULL ? answer->failure : "no answer", pool);
    }
    else if (answer->status >= 300) {
        bool again = is_worth_another_try(answer->status);

        verdict.outcome = again ? "failed" : "refused";
        verdict.reason = apr_psprintf(
            pool, "status %d%s", answer->status,
            answer->status < 400 ? ": redirects are not followed" : "");
        verdict.wait = again ? answer->retry_after : 0;
    }
    return verdict;
}
