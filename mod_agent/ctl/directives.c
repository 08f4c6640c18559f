/* SPDX-License-Identifier: Apache-2.0 */
/* The lines for httpd.conf; see directives.h. */
#include "directives.h"

#include <string.h>

#include <apr_escape.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "../core/json.h"
#include "manifest.h"
#include "node_program.h"
#include "say.h"

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
            ctl_print("<LocationMatch \"^%s%s\">", prefix, member->text);
            ctl_print("    Require all denied");
            ctl_print("</LocationMatch>");
        }
    }
    if (json_object_get_boolean(
            ctl_manifest_get(build, "http.disable_webhooks"))) {
        ctl_print("AgentWebhooks Off");
    }
}

/* As an argument in quotes. */
static const char *quote(const char *text, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "\"", apr_pescape_echo(pool, text, 1), "\"", NULL);
}

void ctl_directives_print(const ctl_build_t *build)
{
    json_object *prefix = ctl_manifest_get(build, "http.mount_prefix");

    ctl_step("For httpd.conf:");
    ctl_print("AgentApplication %s %s%s", build->application.name,
              quote(build->application.directory, build->pool),
              build->application.ignores_auth ? " ignore-auth" : "");
    if (build->application.is_node && !ctl_node_program_is_own(build)) {
        ctl_print("AgentNodeProgram %s", quote(build->node, build->pool));
    }
    print_translated(build);
    print_closed(build, is_word(prefix) ? json_object_get_string(prefix) : "");
}
