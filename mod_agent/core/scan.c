/* SPDX-License-Identifier: Apache-2.0 */
/* The strict JSON scanner (RFC 8259), without recursion; allocates memory for
 * keys only. See scan.h. */
#include "scan.h"

#include <stdint.h>
#include <string.h>

#include "unescape.h"

typedef struct cursor_t {
    agent_scan_t *scan;
    const char *text;
    size_t max_weight;
    /* How many bytes shorter the string being read becomes when unescaped. */
    size_t saved;
    const unsigned char *at;
    const unsigned char *end;
} cursor_t;

static bool fail(cursor_t *c, agent_scan_code_t code)
{
    c->scan->code = code;
    return false;
}

static bool weigh(cursor_t *c, size_t bytes)
{
    c->scan->weight += bytes;
    return c->scan->weight <= c->max_weight || fail(c, AGENT_SCAN_TOO_HEAVY);
}

static void skip_space(cursor_t *c)
{
    while (c->at < c->end
           && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n'
               || *c->at == '\r')) {
        c->at++;
    }
}

static bool is_digit(const cursor_t *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

/* Skips a multi-byte sequence; false for an overlong form, a surrogate, or a
 * code point above U+10FFFF (RFC 3629). */
static bool skip_utf8(cursor_t *c)
{
    unsigned char lead = *c->at++;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    int more;

    if (lead >= 0xc2 && lead <= 0xdf) {
        more = 1;
    }
    else if (lead >= 0xe0 && lead <= 0xef) {
        more = 2;
        low = lead == 0xe0 ? 0xa0 : low;
        high = lead == 0xed ? 0x9f : high;
    }
    else if (lead >= 0xf0 && lead <= 0xf4) {
        more = 3;
        low = lead == 0xf0 ? 0x90 : low;
        high = lead == 0xf4 ? 0x8f : high;
    }
    else {
        return false;
    }
    for (; more > 0; more--, low = 0x80, high = 0xbf) {
        if (c->at == c->end || *c->at < low || *c->at > high) {
            return false;
        }
        c->at++;
    }
    return true;
}

bool agent_scan_is_utf8(const char *text, size_t length)
{
    cursor_t c = {.at = (const unsigned char *)text,
                  .end = (const unsigned char *)text + length};

    while (c.at < c.end) {
        if (*c.at < 0x80) {
            c.at++;
        }
        else if (!skip_utf8(&c)) {
            return false;
        }
    }
    return true;
}

static bool read_unit(cursor_t *c, unsigned *unit)
{
    const char *at = (const char *)c->at;
    int value = agent_unescape_unit(&at, (const char *)c->end);

    c->at = (const unsigned char *)at;
    *unit = (unsigned)value;
    return value >= 0 || fail(c, AGENT_SCAN_SYNTAX);
}

/* After "\u": one unit, or a high surrogate and its low one. */
static bool scan_unicode_escape(cursor_t *c)
{
    unsigned unit;

    if (!read_unit(c, &unit)) {
        return false;
    }
    if (unit == 0) {
        return fail(c, AGENT_SCAN_NUL);
    }
    if (unit < 0xd800 || unit > 0xdfff) {
        c->saved += strlen("\\u0000") - agent_unescape_size(unit);
        return true;
    }
    if (unit >= 0xdc00 || c->end - c->at < 2 || c->at[0] != '\\'
        || c->at[1] != 'u') {
        return fail(c, AGENT_SCAN_SURROGATE);
    }
    c->at += 2;
    c->saved += 2 * strlen("\\u0000") - agent_unescape_size(0x10000);
    if (!read_unit(c, &unit)) {
        return false;
    }
    return (unit >= 0xdc00 && unit <= 0xdfff) || fail(c, AGENT_SCAN_SURROGATE);
}

static bool scan_escape(cursor_t *c)
{
    unsigned char kind = c->at < c->end ? *c->at++ : 0;

    if (kind == 'u') {
        return scan_unicode_escape(c);
    }
    c->saved++;
    return (kind != 0 && strchr("\"\\/bfnrt", kind) != NULL)
        || fail(c, AGENT_SCAN_SYNTAX);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* A word of eight equal bytes. */
#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Not 0 if one of eight bytes is less than limit, which is at most 0x80. Exact
 * if all of them are less than 0x80: the caller tests that too. */
static apr_uint64_t has_less(apr_uint64_t bytes, unsigned limit)
{
    return (bytes - EIGHT(limit)) & ~bytes & EIGHT(0x80);
}

/* Skips plain bytes, eight at a time while at least eight are left. */
static const unsigned char *skip_plain(const unsigned char *at,
                                       const unsigned char *end)
{
    apr_uint64_t bytes;

    for (; end - at >= (ptrdiff_t)sizeof(bytes); at += sizeof(bytes)) {
        memcpy(&bytes, at, sizeof(bytes));
        if (((bytes & EIGHT(0x80)) | has_less(bytes, 0x20)
             | has_less(bytes ^ EIGHT('"'), 1)
             | has_less(bytes ^ EIGHT('\\'), 1))
            != 0) {
            break;
        }
    }
    while (at < end && is_plain(*at)) {
        at++;
    }
    return at;
}

/* c->at goes from the opening quote to the byte after the closing one. */
static bool scan_string(cursor_t *c)
{
    c->at++;
    c->saved = 0;
    for (;;) {
        const unsigned char *at = c->at;

        if (at < c->end && is_plain(*at)) {
            at = skip_plain(at + 1, c->end);
        }
        c->at = at;
        if (at == c->end || (*at < 0x20)) {
            return fail(c, AGENT_SCAN_SYNTAX);
        }
        if (*at == '"') {
            c->at++;
            return true;
        }
        if (*at == '\\') {
            c->at++;
            if (!scan_escape(c)) {
                return false;
            }
        }
        else if (!skip_utf8(c)) {
            return fail(c, AGENT_SCAN_UTF8);
        }
    }
}

/* Digits, at least one; their number is added to *digits. */
static bool scan_digits(cursor_t *c, size_t *digits)
{
    if (!is_digit(c)) {
        return fail(c, AGENT_SCAN_SYNTAX);
    }
    for (; is_digit(c); c->at++) {
        ++*digits;
    }
    return true;
}

static bool scan_exponent(cursor_t *c)
{
    unsigned value = 0;

    if (c->at < c->end && (*c->at == '+' || *c->at == '-')) {
        c->at++;
    }
    if (!is_digit(c)) {
        return fail(c, AGENT_SCAN_SYNTAX);
    }
    for (; is_digit(c); c->at++) {
        value = value > 100000 ? value : value * 10 + (unsigned)(*c->at - '0');
    }
    return value <= AGENT_SCAN_EXPONENT || fail(c, AGENT_SCAN_NUMBER);
}

static bool scan_number(cursor_t *c)
{
    size_t most = c->scan->is_request ? AGENT_SCAN_DIGITS
                                      : AGENT_SCAN_PLAIN_DIGITS;
    size_t digits = 0;

    if (*c->at == '-') {
        c->at++;
    }
    if (c->at < c->end && *c->at == '0') {
        c->at++;
        digits = 1;
    }
    else if (!scan_digits(c, &digits)) {
        return false;
    }
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!scan_digits(c, &digits)) {
            return false;
        }
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (!scan_exponent(c)) {
            return false;
        }
        most = AGENT_SCAN_DIGITS;
    }
    return digits <= most || fail(c, AGENT_SCAN_NUMBER);
}

static bool scan_word(cursor_t *c, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) {
        return fail(c, AGENT_SCAN_SYNTAX);
    }
    c->at += length;
    return true;
}

static bool open_level(cursor_t *c)
{
    agent_scan_t *scan = c->scan;
    agent_scan_level_t *level;

    if (scan->depth
        == (scan->is_request ? AGENT_SCAN_REQUEST_DEPTH : AGENT_SCAN_DEPTH)) {
        return fail(c, AGENT_SCAN_TOO_DEEP);
    }
    level = &scan->levels[scan->depth++];
    memset(level, 0, sizeof(*level));
    level->is_object = *c->at++ == '{';
    level->first_key = scan->keys.count;
    return weigh(c,
                 level->is_object ? AGENT_SCAN_WEIGHT_OBJECT
                                  : AGENT_SCAN_WEIGHT_ARRAY);
}

/* Fails; the JSON pointer of the error ends with the key. */
static bool refuse_key(cursor_t *c, agent_scan_level_t *level,
                       agent_scan_key_t duplicate)
{
    const unsigned char *key = (const unsigned char *)c->text
        + duplicate.offset;
    cursor_t end = {.scan = c->scan, .at = key - 1, .end = c->end};

    scan_string(&end);
    level->key = (const char *)key;
    level->key_length = (size_t)(end.at - 1 - key);
    return fail(c, AGENT_SCAN_DUPLICATE);
}

static bool close_level(cursor_t *c)
{
    agent_scan_t *scan = c->scan;
    agent_scan_level_t *level = &scan->levels[scan->depth - 1];
    agent_scan_key_t duplicate;

    if (level->is_object && level->count > 1 && scan->pool != NULL
        && !agent_scan_keys_close(&scan->keys, level->first_key, &duplicate)) {
        return refuse_key(c, level, duplicate);
    }
    scan->keys.count = level->first_key;
    scan->depth--;
    c->at++;
    return true;
}

static bool keep_key(cursor_t *c, agent_scan_level_t *level, const char *key)
{
    agent_scan_t *scan = c->scan;
    agent_scan_key_t kept = {.offset = (apr_uint32_t)(key - c->text)};

    level->key = key;
    level->key_length = (size_t)((const char *)c->at - 1 - key);
    if (scan->pool != NULL) {
        kept.is_escaped = c->saved > 0;
        kept.length = (apr_uint32_t)(level->key_length - c->saved) & INT32_MAX;
        agent_scan_keys_push(&scan->keys, kept, scan->pool);
    }
    return weigh(c, AGENT_SCAN_WEIGHT_MEMBER + level->key_length);
}

/* A key and its colon. */
static bool scan_key(cursor_t *c, agent_scan_level_t *level)
{
    const char *key = (const char *)c->at + 1;

    if (c->at == c->end || *c->at != '"') {
        return fail(c, AGENT_SCAN_SYNTAX);
    }
    level->key = NULL;
    if (!scan_string(c) || !keep_key(c, level, key)) {
        return false;
    }
    skip_space(c);
    if (c->at == c->end || *c->at != ':') {
        return fail(c, AGENT_SCAN_SYNTAX);
    }
    c->at++;
    return true;
}

static bool scan_scalar_text(cursor_t *c)
{
    switch (*c->at) {
    case '"':
        return scan_string(c);
    case 't':
        return scan_word(c, "true");
    case 'f':
        return scan_word(c, "false");
    case 'n':
        return scan_word(c, "null");
    default:
        return scan_number(c);
    }
}

static bool scan_scalar(cursor_t *c)
{
    const unsigned char *start = c->at;
    bool is_null = *start == 'n';

    return scan_scalar_text(c)
        && (is_null
            || weigh(c, AGENT_SCAN_WEIGHT_SCALAR + (size_t)(c->at - start)));
}

static bool begin_element(cursor_t *c, agent_scan_level_t *level)
{
    level->count++;
    return level->is_object ? scan_key(c, level)
                            : weigh(c, AGENT_SCAN_WEIGHT_ELEMENT);
}

/*
 * Moves from the byte after a value to the first one of the next value: closes
 * the levels that end there, and skips the comma. False with code OK when the
 * outermost level was closed.
 */
static bool find_next_value(cursor_t *c, bool opened)
{
    agent_scan_t *scan = c->scan;

    while (scan->depth > 0) {
        agent_scan_level_t *level = &scan->levels[scan->depth - 1];

        skip_space(c);
        if (c->at == c->end) {
            return fail(c, AGENT_SCAN_SYNTAX);
        }
        if (*c->at == (level->is_object ? '}' : ']')) {
            if (!close_level(c)) {
                return false;
            }
            opened = false;
            continue;
        }
        if (!opened) {
            if (*c->at != ',') {
                return fail(c, AGENT_SCAN_SYNTAX);
            }
            c->at++;
            skip_space(c);
        }
        return begin_element(c, level);
    }
    return false;
}

static bool scan_values(cursor_t *c)
{
    bool opened;

    do {
        skip_space(c);
        if (c->at == c->end) {
            return fail(c, AGENT_SCAN_SYNTAX);
        }
        opened = *c->at == '{' || *c->at == '[';
        if (opened ? !open_level(c) : !scan_scalar(c)) {
            return false;
        }
    } while (find_next_value(c, opened));
    if (c->scan->code != AGENT_SCAN_OK) {
        return false;
    }
    skip_space(c);
    return c->at == c->end || fail(c, AGENT_SCAN_SYNTAX);
}

bool agent_scan_json(agent_scan_t *scan, const char *text, size_t length)
{
    cursor_t c = {.scan = scan,
                  .text = text,
                  .max_weight = scan->max_weight ? scan->max_weight : SIZE_MAX,
                  .at = (const unsigned char *)text,
                  .end = (const unsigned char *)text + length};
    bool good;

    scan->keys.text = text;
    good = length < INT32_MAX ? scan_values(&c)
                              : fail(&c, AGENT_SCAN_TOO_HEAVY);
    agent_scan_keys_release(&scan->keys);
    scan->offset = (size_t)((const char *)c.at - text);
    return good;
}
