/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/model/sse.c core/buffer.c */
/* Server-sent events of a model: the parser's result does not depend on the
 * pieces of the input. */
#include "fuzz.h"

#include <string.h>

#include "../../mod_agent/runners/builtin/model/sse.h"

typedef struct record_t {
    char *text;
    apr_pool_t *pool;
} record_t;

static bool record_event(void *baton, const char *name, const char *data,
                         size_t length)
{
    record_t *record = baton;

    must(strlen(data) <= length);
    record->text = apr_psprintf(record->pool, "%s%s|%" APR_SIZE_T_FMT "|%s\n",
                                record->text, name, length, data);
    return true;
}

static const char *read_in_pieces(const char *text, size_t length, size_t piece,
                                  apr_pool_t *pool)
{
    record_t record = {"", pool};
    runner_sse_t sse;
    size_t at = 0;

    runner_sse_init(&sse, record_event, &record, pool);
    while (at < length) {
        size_t size = piece < length - at ? piece : length - at;

        if (runner_sse_feed(&sse, text + at, size) != APR_SUCCESS) {
            break;
        }
        at += size;
    }
    return record.text;
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    const char *whole = read_in_pieces(text, length, length, pool);

    must(strcmp(whole, read_in_pieces(text, length, 1, pool)) == 0);
    must(strcmp(whole, read_in_pieces(text, length, 3, pool)) == 0);
}
