/* SPDX-License-Identifier: Apache-2.0 */
/* Making problems. */
#include "problem.h"

#include <stdarg.h>
#include <string.h>

#include <apr_strings.h>

#include "clean.h"
#include "text.h"

/* Bytes; a message may quote a page of HTML. */
#define MESSAGE_MAX 2000

apr_status_t runner_problem_set(runner_problem_t **problem, apr_pool_t *pool,
                                const char *name, const char *format, ...)
{
    runner_problem_t *made = apr_pcalloc(pool, sizeof(*made));
    const char *message;
    va_list args;

    va_start(args, format);
    message = apr_pvsprintf(pool, format, args);
    va_end(args);
    message = runner_text_shorten(message, MESSAGE_MAX, pool);
    made->name = name;
    made->message = runner_clean_text(message, strlen(message), NULL, pool);
    *problem = made;
    return APR_EGENERAL;
}
