/* SPDX-License-Identifier: Apache-2.0 */
/* Joining split surrogate pairs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "surrogates.h"

#include <stdbool.h>
#include <string.h>

#include "text.h"

/* The private characters of surrogates begin with these two bytes. */
#define LEAD          "\xf4\x8f"
#define LOW_SURROGATE 0xdc00

static void write_character(char out[4], unsigned character)
{
    out[0] = (char)(0xf0 | (character >> 18));
    out[1] = (char)(0x80 | ((character >> 12) & 0x3f));
    out[2] = (char)(0x80 | ((character >> 6) & 0x3f));
    out[3] = (char)(0x80 | (character & 0x3f));
}

void runner_surrogates_write(char out[4], unsigned surrogate)
{
    write_character(out, RUNNER_SURROGATES_BASE + (surrogate - 0xd800));
}

/* The surrogate at text; 0 for another character. */
static unsigned read_surrogate(const char *text, size_t length)
{
    unsigned character;

    if (length < 4 || memcmp(text, LEAD, 2) != 0) {
        return 0;
    }
    character = 0x10f000U | (((unsigned char)text[2] & 0x3fU) << 6)
        | ((unsigned char)text[3] & 0x3fU);
    return character >= RUNNER_SURROGATES_BASE
        ? character - RUNNER_SURROGATES_BASE + 0xd800
        : 0;
}

/* Takes a surrogate: it completes the pending one, becomes pending, or is
 * replaced. */
static char *take_surrogate(char *out, unsigned *pending, unsigned surrogate)
{
    if (*pending != 0 && surrogate >= LOW_SURROGATE) {
        write_character(out,
                        0x10000 + ((*pending - 0xd800) << 10)
                            + (surrogate - LOW_SURROGATE));
        *pending = 0;
        return out + 4;
    }
    if (*pending != 0 || surrogate >= LOW_SURROGATE) {
        memcpy(out, RUNNER_TEXT_REPLACEMENT, 3);
        out += 3;
    }
    *pending = surrogate < LOW_SURROGATE ? surrogate : 0;
    return out;
}

const char *runner_surrogates_join(unsigned *pending, const char *text,
                                   size_t *length, apr_pool_t *pool)
{
    char *joined;
    char *out;

    /* Not strstr(): the piece may be a part of a longer text. */
    if (*length == 0
        || (*pending == 0
            && memmem(text, *length, LEAD, sizeof(LEAD) - 1) == NULL)) {
        return text;
    }
    /* A pending surrogate may be replaced by three bytes. */
    joined = apr_palloc(pool, *length + 4);
    out = joined;
    for (size_t i = 0; i < *length;) {
        unsigned surrogate = read_surrogate(text + i, *length - i);

        if (surrogate != 0) {
            out = take_surrogate(out, pending, surrogate);
            i += 4;
            continue;
        }
        if (*pending != 0) {
            memcpy(out, RUNNER_TEXT_REPLACEMENT, 3);
            out += 3;
            *pending = 0;
        }
        *out++ = text[i++];
    }
    *out = '\0';
    *length = (size_t)(out - joined);
    return joined;
}
