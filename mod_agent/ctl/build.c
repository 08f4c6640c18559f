/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a build; see build.h. */
#include "build.h"

#include "directives.h"
#include "manifest.h"
#include "node.h"
#include "python.h"
#include "report.h"
#include "say.h"
#include "user.h"

int ctl_build(ctl_build_t *build)
{
    bool done;

    if (!ctl_user_become(build)) {
        return 1;
    }
    if (!ctl_manifest_read(build)) {
        return 2;
    }
    done = build->application.is_node ? ctl_node_install(build)
                                      : ctl_python_install(build);
    if (!done || !ctl_report_graphs(build)) {
        return 1;
    }
    ctl_directives_print(build);
    return 0;
}
