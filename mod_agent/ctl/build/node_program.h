/* SPDX-License-Identifier: Apache-2.0 */
/* The Node that installs the packages of an application, and executes it. */
#ifndef AGENT_CTL_NODE_PROGRAM_H
#define AGENT_CTL_NODE_PROGRAM_H

#include "build.h"

/*
 * Sets build->node to the absolute path of a Node that is as new as the
 * LangGraph packages and `node_version` want, and puts its folder first in
 * PATH: the given one; else the first in PATH that is new enough; else the one
 * of a package of PyPI, by runners/node/node.txt, in the application's folder,
 * which it installs, or updates to that list, with uv or pip. Prints which one
 * was taken. Returns false, after printing why, if there is none.
 */
bool ctl_node_program_choose(ctl_build_t *build);

/* Whether build->node is that of the package: httpd finds it. */
bool ctl_node_program_is_own(const ctl_build_t *build);

#endif
