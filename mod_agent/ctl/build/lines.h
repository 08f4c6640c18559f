/* SPDX-License-Identifier: Apache-2.0 */
/* The lines for httpd.conf that stand for members of langgraph.json. */
#ifndef AGENT_CTL_LINES_H
#define AGENT_CTL_LINES_H

#include "manifest.h"

typedef struct ctl_lines_t {
    const ctl_manifest_t *manifest;
    /* The lines as they are printed; NULL: they are not recorded. */
    json_object *record;
    /* Lives as long as the build. */
    apr_pool_t *pool;
} ctl_lines_t;

#endif
