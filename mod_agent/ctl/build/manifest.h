/* SPDX-License-Identifier: Apache-2.0 */
/* Members of langgraph.json other than `graphs`, which httpd reads itself. */
#ifndef AGENT_CTL_MANIFEST_H
#define AGENT_CTL_MANIFEST_H

#include <stdbool.h>

#include <json-c/json.h>

#include "../../config/application.h"

typedef struct ctl_manifest_t {
    json_object *file;
    /* A graph is in TypeScript. */
    bool has_typescript;
} ctl_manifest_t;

/* Reads langgraph.json in the application's directory, which is the working
 * one: sets the rest of application, and manifest, both in pool. Returns false,
 * after printing why, if it cannot be served. Prints a warning for each member
 * without effect. */
bool ctl_manifest_read(ctl_manifest_t *manifest,
                       agent_application_t *application, apr_pool_t *pool);

/* Returns the value of a member below others, given as `http.cors`; NULL:
 * absent or null. */
json_object *ctl_manifest_get(const ctl_manifest_t *manifest, const char *path);

/* Returns the text of a member of the first level; NULL: absent, or no text. */
const char *ctl_manifest_text(const ctl_manifest_t *manifest, const char *name);

#endif
