/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deployments as texts: `NAME` under the built-in account, `NAME@ACCOUNT` under
 * another one. The first migration creates the built-in ones.
 */
#ifndef AGENT_CORE_DEPLOYMENT_H
#define AGENT_CORE_DEPLOYMENT_H

#include <stdbool.h>

#include <apr_pools.h>

#include "uuid.h"

#define AGENT_DEPLOYMENT_NAME "default"
#define AGENT_DEPLOYMENT_ID   "00000000-0000-0000-0000-000000000001"
/* The account `default`. */
#define AGENT_ACCOUNT_ID "00000000-0000-0000-0000-00000000000a"
/* Characters of a deployment's name: those of a label in the DNS. */
#define AGENT_DEPLOYMENT_NAME_MAX 63
/* Of the text, with the terminating NUL. */
#define AGENT_DEPLOYMENT_SIZE (AGENT_DEPLOYMENT_NAME_MAX + 1 + AGENT_UUID_SIZE)

/* Whether the text is a name: 1 to AGENT_DEPLOYMENT_NAME_MAX lower case
 * letters, digits, - and _, a letter or digit first. */
bool agent_deployment_is_name(const char *text);

/* Returns the text of a name and the id of an account, in lower case, in pool.
 */
const char *agent_deployment_print(const char *name, const char *account_id,
                                   apr_pool_t *pool);

/* Returns the id of the account, borrowed from the text; NULL: the built-in
 * one. */
const char *agent_deployment_account(const char *deployment);

/* Returns the name, in pool or borrowed from the text. */
const char *agent_deployment_name(const char *deployment, apr_pool_t *pool);

#endif
