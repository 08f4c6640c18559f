/* SPDX-License-Identifier: Apache-2.0 */
/* Imports the graphs of an application. */
#ifndef AGENT_CTL_REPORT_H
#define AGENT_CTL_REPORT_H

#include "build.h"

/* Whether the user can read the runner of the application; prints why not. */
bool ctl_report_has_runner(const ctl_build_t *build);

/* Has the runner import every graph, and prints for each the properties of
 * its schemas, or the error with the file that has it. Returns false if a graph
 * failed. */
bool ctl_report_graphs(const ctl_build_t *build);

#endif
