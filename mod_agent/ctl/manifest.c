/* SPDX-License-Identifier: Apache-2.0 */
/* Members of langgraph.json; see manifest.h. */
#include "manifest.h"

#include <string.h>

#include <apr_file_io.h>
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
