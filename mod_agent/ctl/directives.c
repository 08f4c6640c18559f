/* SPDX-License-Identifier: Apache-2.0 */
/* The lines for httpd.conf; see directives.h. */
#include "directives.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../core/header.h"
#include "../core/json.h"
#include "manifest.h"
#include "node_program.h"
#include "say.h"

/* The longest lifetime of AgentThreadTTL and AgentStoreTTL. */
#define TTL_MINUTES_MAX 5256000
/* Of a list of headers; AgentConfigurableHeaders has as many of both. */
#define PATTERNS_MAX 32

/* A member of langgraph.json, and the directive that stands for it. */
typedef struct member_t {
    const char *path;
    const char *text;
} member_t;

/* A text of langgraph.json becomes a line of httpd.conf only if it is one word
 * there. */
static bool is_word(json_object *value)
{
    const char *text = json_object_get_string(value);

    if (text == NULL || text[0] == '\0' || strlen(text) > 255) {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (!apr_isalnum(*text) && strchr("./:*_-", *text) == NULL) {
            return false;
        }
    }
    return true;
}

static void print_words(const ctl_build_t *build, const member_t *member,
                        json_object *value)
{
    bool is_list = json_object_is_type(value, json_type_array);
    size_t count = is_list ? json_object_array_length(value) : 1;
    const char *line = member->text;

    for (size_t i = 0; i < count; i++) {
        json_object *word = is_list ? json_object_array_get_idx(value, i)
                                    : value;

        if (!is_word(word)) {
            ctl_warn(
                "langgraph.json: %s is left out: %s cannot be an argument of "
                "%s",
                member->path, agent_json_print(word, build->pool),
                member->text);
            return;
        }
        /* Bounded: a file of 256 KB, and lists of few words. */
        line = apr_pstrcat(build->pool, line, " ", json_object_get_string(word),
                           NULL);
        if (strlen(line) > 4096) {
            ctl_warn("langgraph.json: %s is left out: it is too long",
                     member->path);
            return;
        }
    }
    if (count > 0) {
        ctl_print("%s", line);
    }
}

static void print_translated(const ctl_build_t *build)
{
    static const member_t translated[] = {
        {"http.mount_prefix", "AgentPrefix"},
        {"http.cors.allow_origins", "AgentAllowOrigin"},
        {"webhooks.url.allowed_ports", "AgentWebhookPorts"},
        {NULL, NULL}};

    for (const member_t *member = translated; member->path != NULL; member++) {
        json_object *value = ctl_manifest_get(build, member->path);

        if (value != NULL) {
            print_words(build, member, value);
        }
    }
}

/* The lifetime that a member in minutes stands for. */
static void print_ttl(const ctl_build_t *build, const char *path,
                      const char *directive)
{
    json_object *value = ctl_manifest_get(build, path);
    double minutes = json_object_get_double(value);

    if (value == NULL) {
        return;
    }
    if (!(minutes >= 1 && minutes <= TTL_MINUTES_MAX)) {
        ctl_warn("langgraph.json: %s is left out: expected from 1 to %d "
                 "minutes, got %s",
                 path, TTL_MINUTES_MAX, agent_json_print(value, build->pool));
    }
    else if (minutes == (int)minutes) {
        ctl_print("%s %dmin", directive, (int)minutes);
    }
    else {
        ctl_print("%s %ds", directive, (int)(minutes * 60));
    }
}

/* Threads are deleted, or kept: all that a server can do. */
static void print_thread_ttl(const ctl_build_t *build)
{
    static const char path[] = "checkpointer.ttl.strategy";
    const char *strategy = json_object_get_string(
        ctl_manifest_get(build, path));

    if (strategy == NULL || strcmp(strategy, "delete") == 0) {
        print_ttl(build, "checkpointer.ttl.default_ttl", "AgentThreadTTL");
        return;
    }
    ctl_warn("langgraph.json: checkpointer.ttl has no effect: expected delete "
             "as %s, got %s",
             path, agent_json_quote(strategy, build->pool));
}

/* Returns the line with the patterns of a list after mark; NULL after a
 * warning. */
static const char *add_patterns(const ctl_build_t *build, const char *line,
                                const char *path, const char *mark)
{
    json_object *list = ctl_manifest_get(build, path);
    size_t count = list != NULL ? json_object_array_length(list) : 0;

    for (size_t i = 0; i < count; i++) {
        json_object *text = json_object_array_get_idx(list, i);
        const char *word = apr_pstrcat(build->pool, mark,
                                       json_object_get_string(text), NULL);
        agent_header_pattern_t pattern;

        /* Bounded: PATTERNS_MAX. */
        if (i == PATTERNS_MAX || !agent_header_read_pattern(&pattern, word)) {
            ctl_warn("langgraph.json: http.configurable_headers is left out: "
                     "%s cannot be an argument of AgentConfigurableHeaders",
                     agent_json_print(text, build->pool));
            return NULL;
        }
        line = apr_pstrcat(build->pool, line, " ", word, NULL);
    }
    return line;
}

/* Without includes nothing is selected. */
static void print_headers(const ctl_build_t *build)
{
    static const char includes[] = "http.configurable_headers.includes";
    json_object *list = ctl_manifest_get(build, includes);
    const char *line;

    if (list == NULL || json_object_array_length(list) == 0) {
        return;
    }
    line = add_patterns(build, "AgentConfigurableHeaders", includes, "");
    if (line != NULL) {
        line = add_patterns(build, line, "http.configurable_headers.excludes",
                            "!");
    }
    if (line != NULL) {
        ctl_print("%s", line);
    }
}

/* As a regular expression: of the characters of a word, these mean something
 * else there. */
static const char *escape(const char *word, apr_pool_t *pool)
{
    char *escaped = apr_palloc(pool, 2 * strlen(word) + 1);
    char *end = escaped;

    for (; *word != '\0'; word++) {
        if (*word == '.' || *word == '*') {
            *end++ = '\\';
        }
        *end++ = *word;
    }
    *end = '\0';
    return escaped;
}

/* Paths below http.mount_prefix that a member closes. */
static void print_closed(const ctl_build_t *build, const char *prefix)
{
    static const member_t closed[] = {
        {"http.disable_assistants", "/assistants(/|$)"},
        {"http.disable_threads", "/threads(/|$)"},
        {"http.disable_runs", "(/threads/[^/]+)?/runs(/|$)"},
        {"http.disable_store", "/store(/|$)"},
        {"http.disable_meta", "/(info|metrics|docs|openapi\\.json)(/|$)"},
        {NULL, NULL}};

    for (const member_t *member = closed; member->path != NULL; member++) {
        if (json_object_get_boolean(ctl_manifest_get(build, member->path))) {
            ctl_print("<LocationMatch \"^%s%s\">", escape(prefix, build->pool),
                      member->text);
            ctl_print("    Require all denied");
            ctl_print("</LocationMatch>");
        }
    }
    if (json_object_get_boolean(
            ctl_manifest_get(build, "http.disable_webhooks"))) {
        ctl_print("AgentWebhooks Off");
    }
}

/* As an argument in quotes, where httpd takes all other bytes as they are. */
static const char *quote(const char *text, apr_pool_t *pool)
{
    char *quoted = apr_palloc(pool, 2 * strlen(text) + 3);
    char *end = quoted;

    *end++ = '"';
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            *end++ = '\\';
        }
        *end++ = *text;
    }
    *end++ = '"';
    *end = '\0';
    return quoted;
}

/* httpd replaces ${NAME} in quotes too, and a line has no way to escape it. */
static bool can_be_argument(const char *text)
{
    if (strstr(text, "${") != NULL) {
        return false;
    }
    while (*text != '\0' && !apr_iscntrl(*text)) {
        text++;
    }
    return *text == '\0';
}

bool ctl_directives_check(const ctl_build_t *build)
{
    if (can_be_argument(build->application.directory)) {
        return true;
    }
    ctl_error("expected a directory whose path has no ${ and no control "
              "characters, which httpd.conf cannot name, got %s",
              agent_json_quote(build->application.directory, build->pool));
    return false;
}

static void print_node(const ctl_build_t *build)
{
    if (!build->application.is_node || ctl_node_program_is_own(build)) {
        return;
    }
    if (can_be_argument(build->node)) {
        ctl_print("AgentNodeProgram %s", quote(build->node, build->pool));
        return;
    }
    ctl_warn("AgentNodeProgram is left out: httpd.conf cannot name %s",
             agent_json_quote(build->node, build->pool));
}

void ctl_directives_print(const ctl_build_t *build)
{
    json_object *prefix = ctl_manifest_get(build, "http.mount_prefix");

    ctl_step("For httpd.conf:");
    ctl_print("AgentApplication %s %s%s", build->application.name,
              quote(build->application.directory, build->pool),
              build->application.ignores_auth ? " ignore-auth" : "");
    print_node(build);
    print_translated(build);
    print_thread_ttl(build);
    print_ttl(build, "store.ttl.default_ttl", "AgentStoreTTL");
    print_headers(build);
    print_closed(build, is_word(prefix) ? json_object_get_string(prefix) : "");
}
