/* SPDX-License-Identifier: Apache-2.0 */
/* Quotes text for JSON (RFC 8259). */
#include "json.h"

#include <string.h>

#include <apr_strings.h>

/* The longest form of one byte: \u00XX. */
#define LONGEST 6

static const char replacement[] = "\xef\xbf\xbd";

/* Bytes of the UTF-8 character (RFC 3629) that begins at p, or 0. */
static size_t measure_utf8(const unsigned char *p)
{
    size_t length = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (p[0] < 0x80) {
        return 1;
    }
    if (length == 0 || p[0] > 0xf4 || (p[0] == 0xe0 && p[1] < 0xa0)
        || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90)
        || (p[0] == 0xf4 && p[1] > 0x8f)) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}

/* Adds a character from 0x80 on, or the replacement of an invalid byte. */
static char *add_high(char *out, const char **text)
{
    size_t length = measure_utf8((const unsigned char *)*text);

    if (length == 0) {
        memcpy(out, replacement, sizeof(replacement) - 1);
        ++*text;
        return out + sizeof(replacement) - 1;
    }
    memcpy(out, *text, length);
    *text += length;
    return out + length;
}

static char *add_low(char *out, unsigned char c)
{
    if (c == '"' || c == '\\') {
        *out++ = '\\';
    }
    if (c < ' ' || c == 0x7f) {
        return out + apr_snprintf(out, LONGEST + 1, "\\u%04x", c);
    }
    *out++ = (char)c;
    return out;
}

const char *rlr_json_quote(const char *text, apr_pool_t *pool)
{
    char *quoted = apr_palloc(pool, LONGEST * strlen(text) + 3);
    char *out = quoted;

    *out++ = '"';
    while (*text != '\0') {
        out = (unsigned char)*text < 0x80 ? add_low(out, (unsigned char)*text++)
                                          : add_high(out, &text);
    }
    *out++ = '"';
    *out = '\0';
    return quoted;
}
