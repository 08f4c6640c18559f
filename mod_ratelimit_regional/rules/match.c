/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizes paths, parses and tests patterns. */
#include "match.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "hex.h"

#define UUID_LENGTH 36

static const char uuid_word[] = "{uuid}";
#define UUID_WORD_LENGTH (sizeof(uuid_word) - 1)

/* Replaces {uuid} in samples of covered paths; random, so that no rule
 * contains it. */
static const char sample_uuid[] = "9c5b94b1-35ad-49bb-b118-8e8fc24abf80";

/* ---- The path ---- */

/* Stands for an encoded slash until the path has been resolved once. No path
 * contains this byte, because %00 is not decoded. */
#define ENCODED_SLASH '\0'

/* Returns the next byte of the path, decoded unless that is unsafe, and
 * advances *path. Returns ENCODED_SLASH for an encoded slash; without
 * decode_slash its three bytes are left as they are. */
static char next_byte(const char **path, bool decode_slash)
{
    const char *p = *path;
    int high = p[0] == '%' ? rlr_hex_value(p[1]) : -1;
    int low = high >= 0 ? rlr_hex_value(p[2]) : -1;
    int byte = high * 16 + low;

    if (low < 0 || byte == 0 || (byte == '/' && !decode_slash)) {
        *path = p + 1;
        return p[0];
    }
    *path = p + 3;
    return byte == '/' ? ENCODED_SLASH : (char)byte;
}

/* Ends the segment of `out` that begins with the slash at `slash` and ends at
 * `end`; returns the position of the next slash. `..` removes the segment
 * before it, if there is one. */
static size_t end_segment(const char *out, size_t slash, size_t end,
                          bool keep_empty)
{
    size_t length = end - slash - 1;

    if (length == 0) {
        return keep_empty ? end : slash;
    }
    if (length == 1 && out[end - 1] == '.') {
        return slash;
    }
    if (length != 2 || out[end - 1] != '.' || out[end - 2] != '.') {
        return end;
    }
    while (slash > 0 && out[--slash] != '/') {
    }
    return slash;
}

static size_t copy_text(char *out, const char *text)
{
    size_t length = strlen(text);

    memcpy(out, text, length + 1);
    return length;
}

/* Decodes and resolves; out begins with a slash. */
static size_t resolve(char *out, const char *path, unsigned slashes)
{
    bool decode_slash = (slashes & RLR_SLASH_DECODE) != 0;
    bool keep_empty = (slashes & RLR_SLASH_KEEP) != 0;
    size_t slash = 0;
    size_t end = 1;

    out[0] = '/';
    path++;
    while (*path != '\0') {
        char c = next_byte(&path, decode_slash);

        if (c == '/') {
            slash = end_segment(out, slash, end, keep_empty);
            end = slash;
        }
        out[end++] = c;
    }
    return end_segment(out, slash, end, keep_empty);
}

/* Resolves again in place, with the encoded slashes. */
static size_t resolve_encoded(char *out, size_t length, bool keep_empty)
{
    size_t slash = 0;
    size_t end = 1;

    for (size_t i = 1; i < length; i++) {
        char c = out[i] == ENCODED_SLASH ? '/' : out[i];

        if (c == '/') {
            slash = end_segment(out, slash, end, keep_empty);
            end = slash;
        }
        out[end++] = c;
    }
    return end_segment(out, slash, end, keep_empty);
}

/* Returns the length of a path in normal form, as most are; 0 for others. */
static size_t measure_plain(const char *path)
{
    const char *p = path;

    while (*p != '\0' && *p != '%') {
        if (*p++ == '/' && (*p == '/' || *p == '.' || *p == '\0')) {
            return 0;
        }
    }
    return *p == '\0' ? (size_t)(p - path) : 0;
}

/* Like httpd: resolves dots, decodes slashes, resolves again: /a%2fb/../c is
 * /c. */
size_t rlr_match_normalize(char *out, const char *path, unsigned slashes)
{
    size_t length = measure_plain(path);

    if (*path != '/' || length > 0) {
        return copy_text(out, path);
    }
    length = resolve(out, path, slashes);
    if ((slashes & RLR_SLASH_DECODE) != 0 && length > 0) {
        length = resolve_encoded(out, length, (slashes & RLR_SLASH_KEEP) != 0);
    }
    if ((slashes & RLR_SLASH_KEEP) != 0 && length > 0) {
        length = resolve_encoded(out, length, false);
    }
    if (length == 0) {
        length = 1;
    }
    out[length] = '\0';
    return length;
}

bool rlr_match_is_normal(const char *path, apr_pool_t *pool)
{
    char *copy = apr_palloc(pool, strlen(path) + 1);

    rlr_match_normalize(copy, path, RLR_SLASH_DECODE);
    return strcmp(copy, path) == 0;
}

const char *rlr_match_strip(const char *path, size_t *length,
                            const char *prefix)
{
    size_t skip = prefix != NULL ? strlen(prefix) : 0;

    if (skip == 0 || skip > *length || memcmp(path, prefix, skip) != 0) {
        return path;
    }
    if (skip == *length) {
        *length = 1;
        return "/";
    }
    if (path[skip] != '/') {
        return path;
    }
    *length -= skip;
    return path + skip;
}

/* ---- Testing ---- */

static bool is_uuid(const char *text)
{
    for (int i = 0; i < UUID_LENGTH; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? text[i] != '-' : rlr_hex_value(text[i]) < 0) {
            return false;
        }
    }
    return true;
}

static bool ends_segment(char c)
{
    return c == '\0' || c == '/';
}

/* Whether the path begins with the text; it has at least match->length
 * bytes. */
static bool matches_at(const rlr_match_t *match, const char *path)
{
    const char *text = match->text;

    if (!match->has_uuid) {
        return memcmp(path, text, match->length) == 0;
    }
    while (*text != '\0') {
        if (*text != '{') {
            if (*text++ != *path++) {
                return false;
            }
            continue;
        }
        if (!is_uuid(path) || !ends_segment(path[UUID_LENGTH])) {
            return false;
        }
        text += UUID_WORD_LENGTH;
        path += UUID_LENGTH;
    }
    return true;
}

static bool contains(const rlr_match_t *match, const char *path, size_t length)
{
    const char *last = path + length - match->length;

    while (path != NULL && path <= last) {
        if (matches_at(match, path)) {
            return true;
        }
        path = strchr(path + 1, '/');
    }
    return false;
}

static bool test_path(const rlr_match_t *match, const char *path, size_t length)
{
    if (match->kind == RLR_MATCH_ANY) {
        return true;
    }
    if (length < match->length || path[0] != '/') {
        return false;
    }
    switch (match->kind) {
    case RLR_MATCH_PREFIX:
        return ends_segment(path[match->length]) && matches_at(match, path);
    case RLR_MATCH_EXACT:
        return length == match->length && matches_at(match, path);
    case RLR_MATCH_SUFFIX:
        return matches_at(match, path + length - match->length);
    default:
        return contains(match, path, length);
    }
}

static bool test_method(const char *expected, const char *method,
                        bool head_as_get)
{
    if (expected == NULL) {
        return true;
    }
    if (method == NULL) {
        return false;
    }
    /* Most differ in the first byte. */
    return (*expected == *method && strcmp(expected, method) == 0)
        || (head_as_get && strcmp(method, "HEAD") == 0
            && strcmp(expected, "GET") == 0);
}

bool rlr_match_test(const rlr_match_t *match, const rlr_target_t *target)
{
    return test_method(match->method, target->method, target->head_as_get)
        && (test_path(match, target->path, target->length)
            || (target->full != target->path
                && test_path(match, target->full, target->full_length)));
}

char rlr_match_second(const rlr_match_t *match)
{
    bool is_at_start = match->kind == RLR_MATCH_PREFIX
        || match->kind == RLR_MATCH_EXACT;

    return is_at_start && match->length > 1 && match->text[1] != '{'
        ? match->text[1]
        : '\0';
}

/* The pattern's text as a path that it matches. */
static const char *make_sample(const rlr_match_t *match, apr_pool_t *pool)
{
    const char *rest = match->text;
    const char *word;
    /* A UUID is as long as six such words. */
    char *sample = apr_palloc(pool, strlen(rest) * 6 + 1);
    char *end = sample;

    for (; (word = strstr(rest, uuid_word)) != NULL;
         rest = word + UUID_WORD_LENGTH) {
        memcpy(end, rest, (size_t)(word - rest));
        end += word - rest;
        memcpy(end, sample_uuid, UUID_LENGTH);
        end += UUID_LENGTH;
    }
    memcpy(end, rest, strlen(rest) + 1);
    return sample;
}

/* Whether a pattern of the first kind can cover one of the other. */
static bool kind_covers(rlr_match_kind_t first, rlr_match_kind_t later)
{
    return first == RLR_MATCH_ANY || later == RLR_MATCH_EXACT || first == later
        || (first == RLR_MATCH_CONTAINS && later != RLR_MATCH_ANY);
}

bool rlr_match_covers(const rlr_match_t *first, const rlr_match_t *later,
                      bool head_as_get, apr_pool_t *pool)
{
    const char *sample = make_sample(later, pool);

    return test_method(first->method, later->method, head_as_get)
        && kind_covers(first->kind, later->kind)
        && test_path(first, sample, strlen(sample));
}

/* ---- Parsing ---- */

static apr_status_t refuse(const char **problem, apr_pool_t *pool,
                           const char *expected, const char *given)
{
    *problem = apr_psprintf(pool, "expected %s, got '%s'", expected, given);
    return APR_EINVAL;
}

static bool is_method(const char *text)
{
    if (!apr_isupper(*text)) {
        return false;
    }
    while (apr_isupper(*text) || apr_isdigit(*text) || *text == '-'
           || *text == '_') {
        text++;
    }
    return *text == '\0';
}

/* Splits off the method; *rest is the pattern after it. */
static apr_status_t read_method(rlr_match_t *match, const char **rest,
                                const char **problem, apr_pool_t *pool)
{
    const char *blank = strchr(match->source, ' ');

    *rest = match->source;
    if (blank == NULL) {
        return APR_SUCCESS;
    }
    match->method = apr_pstrmemdup(pool, match->source,
                                   (apr_size_t)(blank - match->source));
    *rest = blank + strspn(blank, " ");
    if (!is_method(match->method)) {
        return refuse(problem, pool, "a method in capitals before the blank",
                      match->source);
    }
    return APR_SUCCESS;
}

/* Reads the kind from the stars or the `=` around the path; sets *path to the
 * path without them. */
static void read_kind(rlr_match_t *match, const char *text, const char **path,
                      apr_pool_t *pool)
{
    size_t length = strlen(text);

    match->kind = RLR_MATCH_PREFIX;
    *path = text;
    if (strcmp(text, "*") == 0) {
        match->kind = RLR_MATCH_ANY;
        *path = "";
    }
    else if (text[0] == '=') {
        match->kind = RLR_MATCH_EXACT;
        *path = text + 1;
    }
    else if (text[0] == '*' && text[length - 1] == '*') {
        match->kind = RLR_MATCH_CONTAINS;
        *path = apr_pstrmemdup(pool, text + 1, length - 2);
    }
    else if (text[0] == '*') {
        match->kind = RLR_MATCH_SUFFIX;
        *path = text + 1;
    }
}

/* Whether braces are used other than for {uuid} as a whole segment. */
static bool has_stray_brace(const char *path)
{
    for (const char *p = path; (p = strpbrk(p, "{}")) != NULL;
         p += UUID_WORD_LENGTH) {
        if (strncmp(p, uuid_word, UUID_WORD_LENGTH) != 0 || p[-1] != '/'
            || !ends_segment(p[UUID_WORD_LENGTH])) {
            return true;
        }
    }
    return false;
}

static bool has_control(const char *text)
{
    while (*text != '\0' && !apr_iscntrl(*text)) {
        text++;
    }
    return *text != '\0';
}

static apr_status_t check_path(const rlr_match_t *match, const char *path,
                               const char **problem, apr_pool_t *pool)
{
    if (path[0] != '/' || has_control(path)) {
        return refuse(problem, pool,
                      "a path that begins with /, =/ or */, or a * alone",
                      match->source);
    }
    if (strpbrk(path, "*?#") != NULL) {
        return refuse(problem, pool,
                      "a path without ? and #, and * only at its ends with "
                      "a / after the first",
                      match->source);
    }
    if (has_stray_brace(path)) {
        return refuse(problem, pool, "{uuid} as a whole segment of the path",
                      match->source);
    }
    if (!rlr_match_is_normal(path, pool)) {
        return refuse(problem, pool,
                      "a path as it is after decoding %XX and resolving "
                      "//, . and .., without / at its end",
                      match->source);
    }
    if (path[1] == '\0' && match->kind != RLR_MATCH_EXACT) {
        return refuse(problem, pool, "* for every path, or =/ for the root",
                      match->source);
    }
    return APR_SUCCESS;
}

/* Bytes of a request's path that the text matches. */
static size_t measure(const char *text)
{
    size_t length = strlen(text);

    while ((text = strstr(text, uuid_word)) != NULL) {
        text += UUID_WORD_LENGTH;
        length += UUID_LENGTH - UUID_WORD_LENGTH;
    }
    return length;
}

apr_status_t rlr_match_parse(rlr_match_t *match, const char *text,
                             const char **problem, apr_pool_t *pool)
{
    const char *rest;
    const char *path;
    apr_status_t rv;

    memset(match, 0, sizeof(*match));
    match->source = apr_pstrdup(pool, text);
    rv = read_method(match, &rest, problem, pool);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    read_kind(match, rest, &path, pool);
    if (match->kind != RLR_MATCH_ANY) {
        rv = check_path(match, path, problem, pool);
    }
    match->text = path;
    match->length = measure(path);
    match->has_uuid = strstr(path, uuid_word) != NULL;
    return rv;
}
