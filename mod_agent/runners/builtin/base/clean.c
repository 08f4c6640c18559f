/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing what is not valid UTF-8 (RFC 3629) or not valid in JSON (RFC 8259).
 */
#include "clean.h"

#include <string.h>

#include "core/unescape.h"
#include "surrogates.h"
#include "text.h"

#define REPLACEMENT_ESCAPE "\\ufffd"

/* How backslashes are treated. */
typedef enum form_t { FORM_TEXT, FORM_JSON, FORM_JSON_WITH_SURROGATES } form_t;

/* Length of the UTF-8 sequence at bytes; 0 when it is not valid. */
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

/* The code unit of "\uXXXX" at bytes; -1 when there is none. */
static int read_unit(const char *bytes, size_t length)
{
    if (length < 6 || bytes[0] != '\\' || bytes[1] != 'u') {
        return -1;
    }
    bytes += 2;
    return agent_unescape_unit(&bytes, bytes + 4);
}

static bool is_surrogate(int unit)
{
    return unit >= 0xd800 && unit < 0xe000;
}

/* Writes the replacement of an escape that is not allowed. */
static char *replace_escape(char *out, int unit, form_t form)
{
    if (form == FORM_JSON_WITH_SURROGATES && is_surrogate(unit)) {
        runner_surrogates_write(out, (unsigned)unit);
        return out + 4;
    }
    memcpy(out, REPLACEMENT_ESCAPE, 6);
    return out + 6;
}

/* Copies the escape at in, which begins with a backslash, to *out; returns the
 * number of bytes read. */
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
    /* A backslash before a byte above 0x7f is copied alone: the sequence after
     * it must be checked. */
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

const char *runner_clean_text(const char *bytes, size_t length,
                              size_t *out_length, apr_pool_t *pool)
{
    return clean(bytes, length, out_length, FORM_TEXT, pool);
}

const char *runner_clean_json(const char *bytes, size_t length,
                              bool keeps_surrogates, size_t *out_length,
                              apr_pool_t *pool)
{
    return clean(bytes, length, out_length,
                 keeps_surrogates ? FORM_JSON_WITH_SURROGATES : FORM_JSON,
                 pool);
}
