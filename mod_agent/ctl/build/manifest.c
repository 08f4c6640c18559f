/* SPDX-License-Identifier: Apache-2.0 */
/* Members of langgraph.json; see manifest.h. */
#include "manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../../config/member.h"
#include "../../core/json.h"
#include "../base/output.h"

#define FILE_NAME "langgraph.json"
/* Warnings about unknown members. */
#define UNKNOWN_MAX 20

typedef enum effect_t { SERVED, PARENT, PYTHON, NONE } effect_t;

typedef struct member_t {
    const char *path;
    effect_t effect;
    const char *advice;
} member_t;

/* Advice for several members of member.def. */
#define OF_PYTHON "it applies to applications in Python only"
#define OF_APP    "it belongs to http.app"
#define OF_IMAGE  "no image is built: install on this host what it installs"
#define OF_UI     "serve its files with httpd"
#define OF_SWEEP  "what has expired is deleted within seconds"

#define MEMBER(path, types, effect, advice) {path, effect, advice},
static const member_t members[] = {
#include "../../config/member.def"
};

#define MEMBERS (sizeof(members) / sizeof(members[0]))

json_object *ctl_manifest_get(const ctl_manifest_t *manifest, const char *path)
{
    return agent_member_get(manifest->file, path);
}

const char *ctl_manifest_text(const ctl_manifest_t *manifest, const char *name)
{
    return agent_json_string(manifest->file, name, NULL);
}

/* ---- warnings ---- */

typedef struct warning_t {
    bool is_node;
    /* Members that are unknown, so far. */
    int unknown;
    apr_pool_t *pool;
} warning_t;

/* A name with a dot is unknown: with its prefix it could be another's path. */
static const member_t *find_member(const char *path, const char *name)
{
    if (strchr(name, '.') != NULL) {
        return NULL;
    }
    for (size_t i = 0; i < MEMBERS; i++) {
        if (strcmp(members[i].path, path) == 0) {
            return &members[i];
        }
    }
    return NULL;
}

static bool has_effect(const warning_t *warning, const member_t *member)
{
    return member->effect == SERVED || member->effect == PARENT
        || (member->effect == PYTHON && !warning->is_node);
}

/* Prints at most UNKNOWN_MAX warnings. */
static void warn_of_unknown(const char *path, warning_t *warning)
{
    if (++warning->unknown <= UNKNOWN_MAX) {
        ctl_warn(FILE_NAME ": %s has no effect: it is unknown", path);
    }
}

/* prefix: of the paths of the object's members, "" or one that ends with a dot.
 */
static void warn_of_members(warning_t *warning, json_object *object,
                            const char *prefix)
{
    json_object_object_foreach(object, name, value)
    {
        /* Bounded: the members of a file of 256 KB, each in one object. */
        const char *path = apr_pstrcat(warning->pool, prefix, name, NULL);
        const member_t *member = find_member(path, name);

        if (value == NULL) {
            continue;
        }
        if (member == NULL) {
            warn_of_unknown(path, warning);
        }
        else if (!has_effect(warning, member)) {
            ctl_warn(FILE_NAME ": %s has no effect: %s", path, member->advice);
        }
        else if (member->effect == PARENT) {
            /* Bounded: two levels. */
            warn_of_members(warning, value,
                            apr_pstrcat(warning->pool, path, ".", NULL));
        }
    }
}

static void warn(const ctl_manifest_t *manifest, bool is_node, apr_pool_t *pool)
{
    warning_t warning = {.is_node = is_node, .pool = pool};

    warn_of_members(&warning, manifest->file, "");
    if (warning.unknown > UNKNOWN_MAX) {
        ctl_warn(FILE_NAME ": %d more members are unknown",
                 warning.unknown - UNKNOWN_MAX);
    }
    if (json_object_is_type(ctl_manifest_get(manifest, "env"),
                            json_type_array)) {
        ctl_warn(FILE_NAME ": env names variables, and runners have none of "
                           "httpd's: give it a file or an object");
    }
}

/* ---- values ---- */

/* Returns false, after printing why, if the runner could not read the file that
 * is named as env. Relative to the folder, which is the working directory. */
static bool check_env(const ctl_manifest_t *manifest, apr_pool_t *pool)
{
    const char *file = ctl_manifest_text(manifest, "env");
    const char *example;
    const char *reason;
    int error;

    if (file == NULL || access(file, R_OK) == 0) {
        return true;
    }
    error = errno;
    reason = strerror(error);
    example = apr_pstrcat(pool, file, ".example", NULL);
    if (error == EACCES) {
        ctl_error(FILE_NAME ": env: %s: %s: user %s, and that of the runners, "
                            "must be able to read it (chgrp, chmod 640)",
                  file, reason, getenv("USER"));
    }
    else if (error == ENOENT && access(example, R_OK) == 0) {
        ctl_error(FILE_NAME ": env: %s: %s: copy %s to it, and set the values",
                  file, reason, example);
    }
    else {
        ctl_error(FILE_NAME ": env: %s: %s", file, reason);
    }
    return false;
}

bool ctl_manifest_read(ctl_manifest_t *manifest,
                       agent_application_t *application, apr_pool_t *pool)
{
    agent_application_file_t file;
    const char *name = application->name;
    const char *problem;

    /* Messages name the file, since the user has no directive yet. */
    application->name = NULL;
    problem = agent_application_read(application, &file, pool, pool);
    application->name = name;

    if (problem != NULL) {
        ctl_error("%s", problem);
        return false;
    }
    manifest->file = file.json;
    manifest->has_typescript = file.has_typescript;
    if (!check_env(manifest, pool)) {
        return false;
    }
    warn(manifest, application->is_node, pool);
    return true;
}
