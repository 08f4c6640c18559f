/* SPDX-License-Identifier: Apache-2.0 */
/* Applications in JavaScript and TypeScript. */
#ifndef AGENT_CTL_NODE_H
#define AGENT_CTL_NODE_H

#include "build.h"

/* Chooses the Node, and installs the packages that package.json and the lock
 * file name, with the package manager of the lock file. Returns false, after
 * printing why, if there is no Node or something failed. */
bool ctl_node_install(ctl_build_t *build);

#endif
