/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a text, and shortening it. */
#include "text.h"

#include <stdbool.h>
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

int runner_text_count_words(const char *text)
{
    bool was_white = true;
    int count = 0;

    for (; text != NULL && *text != '\0'; text++) {
        bool white = is_white(*text);

        count += was_white && !white;
        was_white = white;
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
