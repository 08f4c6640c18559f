/* SPDX-License-Identifier: Apache-2.0 */
/* Members of langgraph.json; see manifest.h. */
#include "manifest.h"

#include <string.h>

#include <apr_escape.h>
#include <apr_file_io.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "../core/json.h"
#include "say.h"

#define FILE_NAME "langgraph.json"
/* As agent_application_read() has it. */
#define MAX_BYTES ((apr_size_t)256 * 1024)

typedef struct member_t {
    const char *path;
    const char *text;
} member_t;

/* Members that have no effect, and what to do instead. */
static const member_t ignored[] = {
    {"checkpointer.path",
     "checkpoints are stored in PostgreSQL, whatever a graph was compiled "
     "with"},
    {"checkpointer.ttl", "threads do not expire"},
    {"http.app",
     "run the application beside httpd, and mount it with ProxyPass"},
    {"ui", "serve its files with httpd"},
    {"priority", "runs of a thread are executed in their order"},
    {"store.index", "items are searched by their members, not by meaning"},
    {"dockerfile_lines", "install what they install on this host"},
    {"webhooks.headers",
     "webhooks are signed instead (AgentWebhookSecretFile)"},
    {NULL, NULL}};

json_object *ctl_manifest_get(const ctl_build_t *build, const char *path)
{
    char *rest = apr_pstrdup(build->pool, path);
    json_object *value = build->manifest;
    char *state;

    for (const char *name = apr_strtok(rest, ".", &state);
         name != NULL && json_object_is_type(value, json_type_object);
         name = apr_strtok(NULL, ".", &state)) {
        value = agent_json_get(value, name);
        if (*state == '\0') {
            return value;
        }
    }
    return NULL;
}

const char *ctl_manifest_text(const ctl_build_t *build, const char *name)
{
    return agent_json_string(build->manifest, name, NULL);
}

/* ---- reading ---- */

/* agent_application_read() has read the file before. */
static bool read_file(ctl_build_t *build)
{
    char *text = apr_pcalloc(build->pool, MAX_BYTES);
    apr_size_t length = MAX_BYTES - 1;
    agent_error_t *err;
    apr_file_t *file;
    apr_status_t rv = apr_file_open(&file, FILE_NAME, APR_FOPEN_READ,
                                    APR_FPROT_OS_DEFAULT, build->pool);

    if (rv == APR_SUCCESS) {
        rv = apr_file_read_full(file, text, length, &length);
        apr_file_close(file);
    }
    if ((rv != APR_SUCCESS && rv != APR_EOF)
        || agent_json_parse(&build->manifest, text, length, &err, build->pool)
            != APR_SUCCESS) {
        ctl_error(FILE_NAME " changed while it was read");
        return false;
    }
    return true;
}

static void warn_of_ignored(const ctl_build_t *build)
{
    for (const member_t *member = ignored; member->path != NULL; member++) {
        if (ctl_manifest_get(build, member->path) != NULL) {
            ctl_warn(FILE_NAME ": %s has no effect: %s", member->path,
                     member->text);
        }
    }
}

static bool has_typescript(const apr_array_header_t *graphs)
{
    for (int i = 0; i < graphs->nelts; i++) {
        const char *path =
            APR_ARRAY_IDX(graphs, i, const agent_application_graph_t).path;

        if (strstr(path, ".ts:") != NULL || strstr(path, ".tsx:") != NULL
            || strstr(path, ".mts:") != NULL || strstr(path, ".cts:") != NULL) {
            return true;
        }
    }
    return false;
}

bool ctl_manifest_read(ctl_build_t *build)
{
    apr_array_header_t *graphs;
    const char *problem = agent_application_read(&build->application, &graphs,
                                                 build->pool, build->pool);

    if (problem != NULL) {
        ctl_error("%s", problem);
        return false;
    }
    if (!read_file(build)) {
        return false;
    }
    build->has_typescript = has_typescript(graphs);
    warn_of_ignored(build);
    return true;
}

/* ---- directives ---- */

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
            ctl_warn(FILE_NAME ": %s is left out: %s cannot be an argument of "
                               "%s",
                     member->path, agent_json_print(word, build->pool),
                     member->text);
            return;
        }
        /* Bounded: a file of 256 KB, and lists of few words. */
        line = apr_pstrcat(build->pool, line, " ", json_object_get_string(word),
                           NULL);
        if (strlen(line) > 4096) {
            ctl_warn(FILE_NAME ": %s is left out: it is too long",
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

/* As an argument in quotes. */
static const char *quote(const char *text, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "\"", apr_pescape_echo(pool, text, 1), "\"", NULL);
}

void ctl_manifest_print(const ctl_build_t *build)
{
    ctl_step("For httpd.conf:");
    ctl_print("AgentApplication %s %s%s", build->application.name,
              quote(build->application.directory, build->pool),
              build->application.ignores_auth ? " ignore-auth" : "");
    if (build->node != NULL) {
        ctl_print("AgentNodeProgram %s", quote(build->node, build->pool));
    }
    print_translated(build);
}
