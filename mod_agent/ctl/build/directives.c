/* SPDX-License-Identifier: Apache-2.0 */
/* The lines for httpd.conf; see directives.h. */
#include "directives.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../../core/header.h"
#include "../../core/json.h"
#include "cors.h"
#include "lines.h"
#include "node_program.h"
#include "../base/output.h"
#include "webhook.h"
#include "word.h"

/* The longest lifetime of AgentThreadTTL and AgentStoreTTL. */
#define TTL_MINUTES_MAX 5256000

/* A member of langgraph.json, and the directive that stands for it. */
typedef struct member_t {
    const char *path;
    const char *text;
} member_t;

/* The argument of AgentPrefix; "" without one, and after a warning. */
static const char *get_prefix(const ctl_lines_t *lines)
{
    static const char path[] = "http.mount_prefix";
    json_object *value = ctl_manifest_get(lines->manifest, path);
    const char *prefix = json_object_get_string(value);

    if (value == NULL || *prefix == '\0') {
        return "";
    }
    if (*prefix != '/' || prefix[strlen(prefix) - 1] == '/') {
        ctl_warn("langgraph.json: %s is left out: expected a path that begins "
                 "with / and does not end with it, got %s",
                 path, agent_json_print(value, lines->pool));
        return "";
    }
    prefix = ctl_word_join(value, path, "AgentPrefix", " ", lines->pool);
    return prefix != NULL ? prefix : "";
}

/* The lifetime that a member in minutes stands for. */
static void print_ttl(const ctl_lines_t *lines, const char *path,
                      const char *directive)
{
    json_object *value = ctl_manifest_get(lines->manifest, path);
    double minutes = json_object_get_double(value);

    if (value == NULL) {
        return;
    }
    if (!(minutes >= 1 && minutes <= TTL_MINUTES_MAX)) {
        ctl_warn("langgraph.json: %s is left out: expected from 1 to %d "
                 "minutes, got %s",
                 path, TTL_MINUTES_MAX, agent_json_print(value, lines->pool));
    }
    else if (minutes == (int)minutes) {
        ctl_directive(lines->record, "%s %dmin", directive, (int)minutes);
    }
    else {
        ctl_directive(lines->record, "%s %ds", directive, (int)(minutes * 60));
    }
}

/* Threads are deleted, or kept: all that a server can do. */
static void print_thread_ttl(const ctl_lines_t *lines)
{
    static const char path[] = "checkpointer.ttl.strategy";
    const char *strategy = json_object_get_string(
        ctl_manifest_get(lines->manifest, path));

    if (strategy == NULL || strcmp(strategy, "delete") == 0) {
        print_ttl(lines, "checkpointer.ttl.default_ttl", "AgentThreadTTL");
        return;
    }
    ctl_warn("langgraph.json: checkpointer.ttl has no effect: expected delete "
             "as %s, got %s",
             path, agent_json_quote(strategy, lines->pool));
}

/* A ! in the file does not exclude. */
static const char *add_pattern(apr_array_header_t *patterns, const char *mark,
                               const char *text, apr_pool_t *pool)
{
    return *text == '!'
        ? "expected names without !"
        : agent_header_add_pattern(patterns,
                                   apr_pstrcat(pool, mark, text, NULL), pool);
}

/* Adds those of a list, after mark. False: a warning, as httpd would not start.
 */
static bool add_patterns(const ctl_lines_t *lines, const char *path,
                         const char *mark, apr_array_header_t *patterns)
{
    json_object *list = ctl_manifest_get(lines->manifest, path);
    size_t count = list != NULL ? json_object_array_length(list) : 0;

    for (size_t i = 0; i < count; i++) {
        json_object *text = json_object_array_get_idx(list, i);
        const char *problem = add_pattern(
            patterns, mark, json_object_get_string(text), lines->pool);

        if (problem != NULL) {
            ctl_warn("langgraph.json: http.configurable_headers is left out: "
                     "%s cannot be an argument of AgentConfigurableHeaders: %s",
                     agent_json_print(text, lines->pool), problem);
            return false;
        }
    }
    return true;
}

/* No line is printed without includes: nothing would be selected. */
static void print_headers(const ctl_lines_t *lines)
{
    static const char includes[] = "http.configurable_headers.includes";
    static const char excludes[] = "http.configurable_headers.excludes";
    json_object *list = ctl_manifest_get(lines->manifest, includes);
    apr_array_header_t *patterns;
    const char *line = "AgentConfigurableHeaders";

    if (list == NULL || json_object_array_length(list) == 0) {
        return;
    }
    patterns = apr_array_make(lines->pool, 8, sizeof(agent_header_pattern_t));
    if (!add_patterns(lines, includes, "", patterns)
        || !add_patterns(lines, excludes, "!", patterns)) {
        return;
    }
    /* Bounded: a list of patterns is short. */
    for (int i = 0; i < patterns->nelts; i++) {
        const agent_header_pattern_t *pattern = &APR_ARRAY_IDX(
            patterns, i, const agent_header_pattern_t);

        line = apr_pstrcat(lines->pool, line, pattern->is_excluded ? " !" : " ",
                           pattern->name, NULL);
    }
    ctl_directive(lines->record, "%s", line);
}

/* Paths below http.mount_prefix that a member closes. */
static void print_closed(const ctl_lines_t *lines, const char *prefix)
{
    static const member_t closed[] = {
        {"http.disable_assistants", "/assistants(/|$)"},
        {"http.disable_threads", "/threads(/|$)"},
        {"http.disable_runs", "(/threads/[^/]+)?/runs(/|$)"},
        {"http.disable_store", "/store(/|$)"},
        {"http.disable_meta", "/(info|metrics|docs|openapi\\.json)(/|$)"},
        {NULL, NULL}};

    for (const member_t *member = closed; member->path != NULL; member++) {
        if (json_object_get_boolean(
                ctl_manifest_get(lines->manifest, member->path))) {
            ctl_directive(lines->record, "<LocationMatch \"^%s%s\">",
                          ctl_word_escape(prefix, lines->pool), member->text);
            ctl_directive(lines->record, "    Require all denied");
            ctl_directive(lines->record, "</LocationMatch>");
        }
    }
    if (json_object_get_boolean(
            ctl_manifest_get(lines->manifest, "http.disable_webhooks"))) {
        ctl_directive(lines->record, "AgentWebhooks Off");
    }
}

bool ctl_directives_check(const ctl_build_t *build)
{
    if (ctl_word_can_quote(build->application.directory)) {
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
    if (ctl_word_can_quote(build->node)) {
        ctl_directive(build->lines, "AgentNodeProgram %s",
                      ctl_word_quote(build->node, build->pool));
        return;
    }
    ctl_warn("AgentNodeProgram is left out: httpd.conf cannot name %s",
             agent_json_quote(build->node, build->pool));
}

void ctl_directives_print(const ctl_build_t *build)
{
    const ctl_lines_t lines = {&build->manifest, build->lines, build->pool};
    const char *prefix = get_prefix(&lines);

    ctl_step("For httpd.conf:");
    ctl_directive(build->lines, "AgentApplication %s %s%s",
                  build->application.name,
                  ctl_word_quote(build->application.directory, build->pool),
                  build->application.ignores_auth ? " ignore-auth" : "");
    print_node(build);
    if (*prefix != '\0') {
        ctl_directive(build->lines, "AgentPrefix %s", prefix);
    }
    ctl_cors_print(&lines, prefix);
    ctl_webhook_print(&lines);
    print_thread_ttl(&lines);
    print_ttl(&lines, "store.ttl.default_ttl", "AgentStoreTTL");
    print_headers(&lines);
    print_closed(&lines, prefix);
}
