/* SPDX-License-Identifier: Apache-2.0 */
/* Members of langgraph.json other than `graphs`, which httpd reads itself. */
#ifndef AGENT_CTL_MANIFEST_H
#define AGENT_CTL_MANIFEST_H

#include "build.h"

/* Reads build->application.directory/langgraph.json: sets build->application
 * and build->manifest. Returns false, after printing why, if it cannot be
 * served. Prints a warning for each member without effect. */
bool ctl_manifest_read(ctl_build_t *build);

/* Returns the value of a member below others, given as `http.cors`; NULL:
 * absent or null. */
json_object *ctl_manifest_get(const ctl_build_t *build, const char *path);

/* Returns the text of a member of the first level; NULL: absent, or no text. */
const char *ctl_manifest_text(const ctl_build_t *build, const char *name);

#endif
