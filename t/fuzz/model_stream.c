/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/model/sse.c core/buffer.c */
/*
 * A model's stream of events: read in one piece and byte by byte it says the
 * same.
 */
#include "fuzz.h"

#include <string.h>

#include "../../mod_agent/runners/builtin/model/sse.h"

typedef struct heard_t {
    char *text;
    apr_pool_t *pool;
} heard_t;

static bool hear(void *baton, const char *name, const char *data, size_t length)
{
    heard_t *heard = baton;

    must(strlen(data) <= length);
    heard->text = apr_psprintf(heard->pool, "%s%s|%" APR_SIZE_T_FMT "|%s\n",
                               heard->text, name, length, data);
    return true;
}

static const char *read_in_pieces(const char *text, size_t length, size_t piece,
                                  apr_pool_t *pool)
{
    heard_t heard = {"", pool};
    runner_sse_t sse;
    size_t at = 0;

    runner_sse_init(&sse, hear, &heard, pool);
    while (at < length) {
        size_t size = piece < length - at ? piece : length - at;

        if (runner_sse_feed(&sse, text + at, size) != APR_SUCCESS) {
            break;
        }
        at += size;
    }
    return heard.text;
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    const char *whole = read_in_pieces(text, length, length, pool);

    must(strcmp(whole, read_in_pieces(text, length, 1, pool)) == 0);
    must(strcmp(whole, read_in_pieces(text, length, 3, pool)) == 0);
}
