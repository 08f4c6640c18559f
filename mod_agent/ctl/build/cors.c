/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines for http.cors; see cors.h. The module itself answers to pages of
 * allowed origins, with all methods and headers. The lines change its headers
 * where it sends them, so that they open nothing to other origins.
 */
#include "cors.h"

#include <string.h>
#include <strings.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <apr_strings.h>

#include "../../core/json.h"
#include "../../core/origin.h"
#include "../base/output.h"
#include "word.h"

#define AGE_MAX   86400
#define MATCH_MAX 4096
/* Whether the module has admitted the origin. */
#define IS_ADMITTED "expr=-n resp('Access-Control-Allow-Origin')"

/* A list that becomes a header: `replaced` is the expression of the part that
 * it replaces, `start` precedes the words. */
typedef struct list_t {
    const char *path;
    const char *header;
    const char *replaced;
    const char *start;
} list_t;

static const list_t lists[] = {
    {"http.cors.allow_methods", "Access-Control-Allow-Methods", "^.*$", ""},
    /* Headers that a page may send anyway; JSON needs the last. */
    {"http.cors.allow_headers", "Access-Control-Allow-Headers", "^.*$",
     "Accept, Accept-Language, Content-Language, Content-Type, "},
    /* The SDKs read those that the module names. */
    {"http.cors.expose_headers", "Access-Control-Expose-Headers", "$", ", "},
    {NULL, NULL, NULL, NULL}};

static void print_origins(const ctl_lines_t *lines)
{
    static const char path[] = "http.cors.allow_origins";
    json_object *list = ctl_manifest_get(lines->manifest, path);
    size_t count = list != NULL ? json_object_array_length(list) : 0;
    agent_origin_pattern_t pattern;
    const char *words;

    for (size_t i = 0; i < count; i++) {
        json_object *text = json_object_array_get_idx(list, i);

        if (!agent_origin_read_pattern(&pattern,
                                       json_object_get_string(text))) {
            ctl_warn("langgraph.json: %s is left out: %s cannot be an argument "
                     "of AgentAllowOrigin",
                     path, agent_json_print(text, lines->pool));
            return;
        }
    }
    if (count == 0) {
        return;
    }
    words = ctl_word_has(list, "*")
        ? "*"
        : ctl_word_join(list, path, "AgentAllowOrigin", " ", lines->pool);
    if (words != NULL) {
        ctl_directive(lines->record, "AgentAllowOrigin %s", words);
    }
}

/* Returns why an expression is none, in pool; NULL: it is one, by the library
 * of httpd's expressions, with the options of ap_pregcomp(). */
static const char *check_expression(const char *match, apr_pool_t *pool)
{
    PCRE2_UCHAR reason[256] = "";
    PCRE2_SIZE place;
    int error;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)match, PCRE2_ZERO_TERMINATED,
                                     PCRE2_DUPNAMES | PCRE2_DOTALL
                                         | PCRE2_DOLLAR_ENDONLY,
                                     &error, &place, NULL);

    if (code != NULL) {
        pcre2_code_free(code);
        return NULL;
    }
    pcre2_get_error_message(error, reason, sizeof(reason));
    return apr_psprintf(pool, ": %s, at its byte %" APR_SIZE_T_FMT,
                        (const char *)reason, (apr_size_t)place);
}

/* Returns why it cannot be the argument, "" or after a colon; NULL: it can. */
static const char *check_match(const char *match, apr_pool_t *pool)
{
    const char *reason;

    if (!ctl_word_can_quote(match) || strlen(match) > MATCH_MAX
        || strcasecmp(match, "none") == 0) {
        return "";
    }
    reason = check_expression(match, pool);
    /* The expression within that of httpd: (?#, \Q or (?x) # may reach beyond
     * its end. */
    return reason != NULL
        ? reason
        : check_expression(apr_pstrcat(pool, "\\A(?:", match, ")\\z", NULL),
                           pool);
}

static void print_match(const ctl_lines_t *lines)
{
    static const char path[] = "http.cors.allow_origin_regex";
    json_object *value = ctl_manifest_get(lines->manifest, path);
    const char *match = json_object_get_string(value);
    const char *reason;

    if (match == NULL || *match == '\0') {
        return;
    }
    reason = check_match(match, lines->pool);
    if (reason != NULL) {
        ctl_warn("langgraph.json: %s is left out: %s cannot be an argument of "
                 "AgentAllowOriginMatch%s",
                 path, agent_json_print(value, lines->pool), reason);
        return;
    }
    ctl_directive(lines->record, "AgentAllowOriginMatch %s",
                  ctl_word_quote(match, lines->pool));
}

/* ---- lines of mod_headers ---- */

/* The block with these lines, for the paths below prefix. */
typedef struct block_t {
    const ctl_lines_t *lines;
    const char *prefix;
    int count;
} block_t;

static void print_line(block_t *block, const char *line)
{
    if (block->count++ == 0) {
        ctl_directive(block->lines->record,
                      "# With mod_headers (a2enmod headers):");
        ctl_directive(block->lines->record, "<LocationMatch \"^%s(/|$)\">",
                      ctl_word_escape(block->prefix, block->lines->pool));
    }
    ctl_directive(block->lines->record, "    Header always %s", line);
}

/* Prints no line for `*`: all are admitted, as without the member. */
static void print_list(block_t *block, const list_t *row)
{
    json_object *list = ctl_manifest_get(block->lines->manifest, row->path);
    const char *words = NULL;

    if (list != NULL && json_object_array_length(list) > 0
        && !ctl_word_has(list, "*")) {
        words = ctl_word_join(list, row->path, "Header", ", ",
                              block->lines->pool);
    }
    if (words != NULL) {
        print_line(block,
                   apr_psprintf(block->lines->pool, "edit %s %s \"%s%s\"",
                                row->header, row->replaced, row->start, words));
    }
}

/* Returns where the label of a domain that ends at end begins; end: there is
 * none. */
static size_t find_label(const char *text, size_t end)
{
    static const char characters[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ-";

    while (end > 0 && strchr(characters, text[end - 1]) != NULL) {
        end--;
    }
    return end;
}

/* Whether an expression has `\.` before a place. */
static bool is_dot(const char *match, size_t place)
{
    size_t backslashes = 0;

    if (place == 0 || match[place - 1] != '.') {
        return false;
    }
    while (backslashes < place - 1 && match[place - 2 - backslashes] == '\\') {
        backslashes++;
    }
    return backslashes % 2 == 1;
}

/* An address has as many labels. */
static bool is_number(const char *text, size_t length)
{
    return strspn(text, "0123456789") >= length;
}

/*
 * Whether the expression ends with the name of a domain of two labels
 * (\.example\.com or ://example\.com, with or without a $): only origins of it,
 * or below it, match. All that could make an end of less count is refused:
 * alternatives, a comment after (?x), (*ACCEPT).
 */
static bool ends_with_domain(const char *match)
{
    size_t end = strlen(match);
    size_t last;
    size_t start;

    if (strpbrk(match, "|#") != NULL || strstr(match, "(*") != NULL) {
        return false;
    }
    end -= end > 0 && match[end - 1] == '$' ? 1 : 0;
    last = find_label(match, end);
    if (last == end || !is_dot(match, last)
        || is_number(match + last, end - last)) {
        return false;
    }
    start = find_label(match, last - 2);
    return start < last - 2
        && (is_dot(match, start)
            || (start >= 3 && strncmp(match + start - 3, "://", 3) == 0));
}

/* Whether a pattern of AgentAllowOrigin admits all below a domain of one label.
 */
static bool is_too_wide(const char *text)
{
    agent_origin_pattern_t pattern;
    const char *host;
    size_t last;

    /* A list with a text that is not a pattern is left out. */
    if (!agent_origin_read_pattern(&pattern, text)) {
        return false;
    }
    host = pattern.origin.host;
    last = pattern.is_domain ? find_label(host, pattern.origin.host_length) : 0;
    return pattern.is_any
        || (pattern.is_domain
            && (last < 2
                || is_number(host + last, pattern.origin.host_length - last)));
}

static bool admits_any(const ctl_lines_t *lines)
{
    const char *match = json_object_get_string(
        ctl_manifest_get(lines->manifest, "http.cors.allow_origin_regex"));
    json_object *origins = ctl_manifest_get(lines->manifest,
                                            "http.cors.allow_origins");
    size_t count = origins != NULL ? json_object_array_length(origins) : 0;

    for (size_t i = 0; i < count; i++) {
        if (is_too_wide(json_object_get_string(
                json_object_array_get_idx(origins, i)))) {
            return true;
        }
    }
    return match != NULL && *match != '\0' && !ends_with_domain(match);
}

static void print_credentials(block_t *block)
{
    static const char path[] = "http.cors.allow_credentials";

    if (!json_object_get_boolean(
            ctl_manifest_get(block->lines->manifest, path))) {
        return;
    }
    if (admits_any(block->lines)) {
        ctl_warn("langgraph.json: %s is left out: with the origin *, or an "
                 "origin or expression that does not end with a domain of two "
                 "labels (*.example.com, \\.example\\.com), any page might act "
                 "for its visitors",
                 path);
        return;
    }
    print_line(block,
               "set Access-Control-Allow-Credentials true "
               "\"" IS_ADMITTED "\"");
}

static void print_age(block_t *block)
{
    static const char path[] = "http.cors.max_age";
    json_object *value = ctl_manifest_get(block->lines->manifest, path);
    double age = json_object_get_double(value);

    if (value == NULL) {
        return;
    }
    if (!(age >= 0 && age <= AGE_MAX)) {
        ctl_warn("langgraph.json: %s is left out: expected from 0 to %d "
                 "seconds, got %s",
                 path, AGE_MAX, agent_json_print(value, block->lines->pool));
        return;
    }
    print_line(block,
               apr_psprintf(block->lines->pool,
                            "edit Access-Control-Max-Age ^.*$ %d", (int)age));
}

void ctl_cors_print(const ctl_lines_t *lines, const char *prefix)
{
    block_t block = {lines, prefix, 0};

    print_origins(lines);
    print_match(lines);
    for (const list_t *row = lists; row->path != NULL; row++) {
        print_list(&block, row);
    }
    print_credentials(&block);
    print_age(&block);
    if (block.count > 0) {
        ctl_directive(lines->record, "</LocationMatch>");
    }
}
