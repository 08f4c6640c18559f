/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a text, and shortening it. */
#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <apr_strings.h>

/* As in the C locale. */
static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t skip_class(const char *text, bool is_space)
{
    size_t length = 0;

    while (text[length] != '\0' && is_white(text[length]) == is_space) {
        length++;
    }
    return length;
}

size_t runner_text_measure_word(const char *text)
{
    size_t length = skip_class(text, true);

    length += skip_class(text + length, false);
    if (text[length + skip_class(text + length, true)] == '\0') {
        length += skip_class(text + length, true);
    }
    return length;
}

/* The same byte eight times. */
#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The highest bit of each of eight bytes that is white, as is_white(). Sums of
 * seven bits do not carry into the next byte. */
static uint64_t mark_white(const char *text)
{
    uint64_t bytes;
    uint64_t low;
    uint64_t control;
    uint64_t other;

    memcpy(&bytes, text, sizeof(bytes));
    low = bytes & EIGHT(0x7f);
    control = (low + EIGHT(0x80 - '\t')) & ~(low + EIGHT(0x80 - '\r' - 1));
    other = (low ^ EIGHT(' ')) + EIGHT(0x7f);
    return (control | ~other) & ~bytes & EIGHT(0x80);
}

/* Words that begin in eight bytes; text[-1] is read too. */
static int count_starts(const char *text)
{
    uint64_t starts = ~mark_white(text) & mark_white(text - 1);

    return (int)((((starts >> 7) & EIGHT(1)) * EIGHT(1)) >> 56);
}

/* Eight bytes at once: models count the words of a whole conversation. */
int runner_text_count_words(const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0;
    int count = length > 0 && !is_white(*text);
    size_t i = 1;

    for (; i + sizeof(uint64_t) <= length; i += sizeof(uint64_t)) {
        count += count_starts(text + i);
    }
    for (; i < length; i++) {
        count += is_white(text[i - 1]) && !is_white(text[i]);
    }
    return count;
}

const char *runner_text_shorten(const char *text, size_t max, apr_pool_t *pool)
{
    size_t length = strlen(text);

    if (length <= max) {
        return text;
    }
    while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80) {
        max--;
    }
    return apr_pstrcat(pool, apr_pstrndup(pool, text, max), "...", NULL);
}
