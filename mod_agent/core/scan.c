/* SPDX-License-Identifier: Apache-2.0 */
/* The strict JSON scanner (RFC 8259): no recursion, no allocation of its own;
 * see scan.h. */
#include "scan.h"

#include <string.h>

#include <apr_strings.h>

typedef struct cursor_t {
    agent_scan_t *scan;
    const unsigned char *at;
    const unsigned char *end;
} cursor_t;

static bool fail(cursor_t *c, agent_scan_code_t code)
{
    c->scan->code = code;
    return false;
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

/* One multi-byte sequence: no overlong form, no surrogate, no more than
 * U+10FFFF (RFC 3629). */
static bool scan_utf8(cursor_t *c)
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
        return fail(c, AGENT_SCAN_UTF8);
    }
    for (; more > 0; more--, low = 0x80, high = 0xbf) {
        if (c->at == c->end || *c->at < low || *c->at > high) {
            return fail(c, AGENT_SCAN_UTF8);
        }
        c->at++;
    }
    return true;
}

static bool read_hex4(cursor_t *c, unsigned *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, c->at++) {
        unsigned char d = c->at < c->end ? *c->at : 0;

        if (d >= '0' && d <= '9') {
            *unit = *unit * 16 + (unsigned)(d - '0');
        }
        else if ((d | 32) >= 'a' && (d | 32) <= 'f') {
            *unit = *unit * 16 + (unsigned)((d | 32) - 'a' + 10);
        }
        else {
            return fail(c, AGENT_SCAN_SYNTAX);
        }
    }
    return true;
}

/* After "\u": one unit, or a high surrogate and its low one. */
static bool scan_unicode_escape(cursor_t *c)
{
    unsigned unit;

    if (!read_hex4(c, &unit)) {
        return false;
    }
    if (unit == 0) {
        return fail(c, AGENT_SCAN_NUL);
    }
    if (unit < 0xd800 || unit > 0xdfff) {
        return true;
    }
    if (unit >= 0xdc00 || c->end - c->at < 2 || c->at[0] != '\\'
        || c->at[1] != 'u') {
        return fail(c, AGENT_SCAN_SURROGATE);
    }
    c->at += 2;
    if (!read_hex4(c, &unit)) {
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
    return (kind != 0 && strchr("\"\\/bfnrt", kind) != NULL)
        || fail(c, AGENT_SCAN_SYNTAX);
}

/* From the opening quote to behind the closing one. */
static bool scan_string(cursor_t *c)
{
    c->at++;
    while (c->at < c->end && *c->at != '"') {
        if (*c->at == '\\') {
            c->at++;
            if (!scan_escape(c)) {
                return false;
            }
        }
        else if (*c->at < 0x20) {
            return fail(c, AGENT_SCAN_SYNTAX);
        }
        else if (*c->at < 0x80) {
            c->at++;
        }
        else if (!scan_utf8(c)) {
            return false;
        }
    }
    if (c->at == c->end) {
        return fail(c, AGENT_SCAN_SYNTAX);
    }
    c->at++;
    return true;
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
    if (level->is_object && scan->key_counts != NULL) {
        level->slot = scan->key_counts->nelts;
        APR_ARRAY_PUSH(scan->key_counts, size_t) = 0;
    }
    return true;
}

static void close_level(cursor_t *c)
{
    agent_scan_t *scan = c->scan;
    agent_scan_level_t *level = &scan->levels[--scan->depth];

    if (level->is_object && scan->key_counts != NULL) {
        APR_ARRAY_IDX(scan->key_counts, level->slot, size_t) = level->count;
    }
    c->at++;
}

/* A key and its colon. */
static bool scan_key(cursor_t *c, agent_scan_level_t *level)
{
    const char *key = (const char *)c->at + 1;

    if (c->at == c->end || *c->at != '"') {
        return fail(c, AGENT_SCAN_SYNTAX);
    }
    level->key = NULL;
    if (!scan_string(c)) {
        return false;
    }
    level->key = key;
    level->key_length = (size_t)((const char *)c->at - 1 - key);
    skip_space(c);
    if (c->at == c->end || *c->at != ':') {
        return fail(c, AGENT_SCAN_SYNTAX);
    }
    c->at++;
    return true;
}

static bool scan_scalar(cursor_t *c)
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

/*
 * Goes from behind a value to the start of the next one: closes levels that
 * end here, takes the comma. False with code OK when the outermost level
 * closed.
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
            close_level(c);
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
        level->count++;
        return !level->is_object || scan_key(c, level);
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
    cursor_t c = {scan, (const unsigned char *)text,
                  (const unsigned char *)text + length};
    bool good = scan_values(&c);

    scan->offset = (size_t)((const char *)c.at - text);
    return good;
}

static const char *escape_key(const agent_scan_level_t *level, apr_pool_t *pool)
{
    /* Enough to find the place; a key may be megabytes long. */
    size_t length = level->key_length < 64 ? level->key_length : 64;
    char *out = apr_palloc(pool, 2 * length + 1);
    char *p = out;

    /* A cut must not leave half a UTF-8 sequence. */
    while (length > 0 && length < level->key_length
           && ((unsigned char)level->key[length] & 0xc0) == 0x80) {
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        char c = level->key[i];

        if (c == '~' || c == '/') {
            *p++ = '~';
            c = c == '~' ? '0' : '1';
        }
        *p++ = c;
    }
    *p = '\0';
    return out;
}

const char *agent_scan_pointer(const agent_scan_t *scan, apr_pool_t *pool)
{
    const char *pointer = "";

    /* Sixteen levels find any place a person can have meant. */
    for (unsigned i = 0; i < scan->depth && i < 16; i++) {
        const agent_scan_level_t *level = &scan->levels[i];

        if (level->count == 0) {
            break;
        }
        if (!level->is_object) {
            pointer = apr_psprintf(pool, "%s/%" APR_SIZE_T_FMT, pointer,
                                   level->count - 1);
        }
        else if (level->key != NULL) {
            pointer = apr_pstrcat(pool, pointer, "/", escape_key(level, pool),
                                  NULL);
        }
    }
    return pointer;
}

const char *agent_scan_reason(agent_scan_code_t code)
{
    switch (code) {
    case AGENT_SCAN_OK:
        return "is well-formed";
    case AGENT_SCAN_UTF8:
        return "is not valid UTF-8";
    case AGENT_SCAN_NUL:
        return "contains the character U+0000, which cannot be stored";
    case AGENT_SCAN_SURROGATE:
        return "contains half of a surrogate pair";
    case AGENT_SCAN_NUMBER:
        return "contains a number of more than 40 digits (in a runner's line "
               "348 without an exponent) or with an exponent beyond 308";
    case AGENT_SCAN_TOO_DEEP:
        return "is nested deeper than 128 levels (in a request 120)";
    default:
        return "is not JSON";
    }
}
