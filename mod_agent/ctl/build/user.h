/* SPDX-License-Identifier: Apache-2.0 */
/* The user that builds an application. */
#ifndef AGENT_CTL_USER_H
#define AGENT_CTL_USER_H

#include <stdbool.h>

#include <sys/types.h>

#include "build.h"

/*
 * Root becomes the user that was given, or the owner of the application's
 * folder, if no other user can write to it or replace a folder above it;
 * another user stays the same. Before that it creates the folders that the user
 * may not create: those in a folder of root. The environment is that of a login
 * of the user, with the variables that tell package managers where to find
 * packages. Returns false, after printing why, if that user is root or cannot
 * build there.
 */
bool ctl_user_become(const ctl_build_t *build);

/* Returns the name of the user, or words with its number, in pool. */
const char *ctl_user_name(uid_t id, apr_pool_t *pool);

/* Returns PATH as messages name it, in pool: with its folders if they are those
 * that root's build searches, whatever PATH root has. */
const char *ctl_user_path(apr_pool_t *pool);

/* Removes the variables of package managers from the environment: the import of
 * graphs, which executes the application's code, needs no registry. */
void ctl_user_forget_registries(ctl_build_t *build);

#endif
