/* SPDX-License-Identifier: Apache-2.0 */
/* Applications in JavaScript and TypeScript. */
#ifndef AGENT_CTL_NODE_H
#define AGENT_CTL_NODE_H

#include "build.h"

/* Installs the packages that package.json and the lock file name, with the
 * package manager of the lock file. Returns false, after printing why, if Node
 * is too old or something failed. */
bool ctl_node_install(const ctl_build_t *build);

/* Returns the program that executes JavaScript: the given one, else the first
 * `node` in PATH, else `node`. */
const char *ctl_node_program(const ctl_build_t *build);

#endif
