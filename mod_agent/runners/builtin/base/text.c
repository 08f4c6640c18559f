/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaning and splitting text (RFC 3629, RFC 8259); see text.h. */
#include "text.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "surrogates.h"

#define REPLACEMENT_ESCAPE "\\ufffd"

/* What the bytes are, and so what a backslash means. */
typedef enum form_t { FORM_TEXT, FORM_JSON, FORM_JSON_WITH_SURROGATES } form_t;

/* Length of the well-formed sequence at bytes, 0 when there is none. */
static size_t measure_sequence(const unsigned char *bytes, size_t length)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t size;

    if (bytes[0] < 0x80) {
        return 1;
    }
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4) {
        return 0;
    }
    size = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
    low = bytes[0] == 0xe0 ? 0xa0 : bytes[0] == 0xf0 ? 0x90 : low;
    high = bytes[0] == 0xed ? 0x9f : bytes[0] == 0xf4 ? 0x8f : high;
    if (size > length || bytes[1] < low || bytes[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return size;
}

/* The code unit of "\uXXXX" at bytes, -1 when that is not what stands there. */
static int read_unit(const char *bytes, size_t length)
{
    int unit = 0;

    if (length < 6 || bytes[0] != '\\' || bytes[1] != 'u') {
        return -1;
    }
    for (int i = 2; i < 6; i++) {
        int c = (unsigned char)bytes[i] | 32;

        if (!apr_isxdigit(bytes[i])) {
            return -1;
        }
        unit = unit * 16 + (c >= 'a' ? c - 'a' + 10 : c - '0');
    }
    return unit;
}

static bool is_surrogate(int unit)
{
    return unit >= 0xd800 && unit < 0xe000;
}

/* Writes what stands for an escape that may not stay. */
static char *replace_escape(char *out, int unit, form_t form)
{
    if (form == FORM_JSON_WITH_SURROGATES && is_surrogate(unit)) {
        runner_surrogates_write(out, (unsigned)unit);
        return out + 4;
    }
    memcpy(out, REPLACEMENT_ESCAPE, 6);
    return out + 6;
}

/*
 * Copies the escape at in, which begins with a backslash, to *out; returns how
 * many bytes were read.
 */
static size_t copy_escape(char **out, const char *in, size_t length,
                          form_t form)
{
    int unit = read_unit(in, length);
    int second = length > 6 ? read_unit(in + 6, length - 6) : -1;
    size_t size = unit < 0 ? 2 : 6;

    if (unit >= 0xd800 && unit < 0xdc00 && second >= 0xdc00
        && second < 0xe000) {
        size = 12;
    }
    else if (unit == 0 || is_surrogate(unit)) {
        *out = replace_escape(*out, unit, form);
        return 6;
    }
    /* A backslash before a byte above 0x7f is copied alone: what follows is
     * looked at for itself. */
    if (size > length || (size == 2 && (unsigned char)in[1] >= 0x80)) {
        size = 1;
    }
    memcpy(*out, in, size);
    *out += size;
    return size;
}

static const char *clean(const char *bytes, size_t length, size_t *out_length,
                         form_t form, apr_pool_t *pool)
{
    /* One bad byte becomes three. */
    char *cleaned = apr_palloc(pool, 3 * length + 1);
    char *out = cleaned;
    size_t at = 0;

    while (at < length) {
        size_t size = measure_sequence((const unsigned char *)bytes + at,
                                       length - at);

        if (size == 0 || bytes[at] == '\0') {
            memcpy(out, RUNNER_TEXT_REPLACEMENT, 3);
            out += 3;
            at++;
        }
        else if (form != FORM_TEXT && bytes[at] == '\\') {
            at += copy_escape(&out, bytes + at, length - at, form);
        }
        else {
            memcpy(out, bytes + at, size);
            out += size;
            at += size;
        }
    }
    *out = '\0';
    if (out_length != NULL) {
        *out_length = (size_t)(out - cleaned);
    }
    return cleaned;
}

const char *runner_text_clean(const char *bytes, size_t length,
                              size_t *out_length, apr_pool_t *pool)
{
    return clean(bytes, length, out_length, FORM_TEXT, pool);
}

const char *runner_text_clean_json(const char *bytes, size_t length,
                                   bool keeps_surrogates, size_t *out_length,
                                   apr_pool_t *pool)
{
    return clean(bytes, length, out_length,
                 keeps_surrogates ? FORM_JSON_WITH_SURROGATES : FORM_JSON, pool);
}

static size_t skip_class(const char *text, bool is_space)
{
    size_t length = 0;

    while (text[length] != '\0'
           && (apr_isspace(text[length]) != 0) == is_space) {
        length++;
    }
    return length;
}

size_t runner_text_word(const char *text)
{
    size_t length = skip_class(text, true);

    length += skip_class(text + length, false);
    if (text[length + skip_class(text + length, true)] == '\0') {
        length += skip_class(text + length, true);
    }
    return length;
}

int runner_text_count(const char *text)
{
    int count = 0;

    if (text == NULL) {
        return 0;
    }
    for (text += skip_class(text, true); *text != '\0'; count++) {
        text += skip_class(text, false);
        text += skip_class(text, true);
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
