/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the members of langgraph.json. */
#ifndef AGENT_CONFIG_MEMBER_H
#define AGENT_CONFIG_MEMBER_H

#include <apr_pools.h>
#include <json-c/json.h>

/*
 * Checks members that httpd, agentctl or the runners read, beside `graphs`:
 * their types, not their values. Absent members and null are valid. Returns
 * NULL, or what was expected ("a text as node_version"), with the type that was
 * found in *got. Both are in pool or constant.
 */
const char *agent_member_check(const char **got, json_object *file,
                               apr_pool_t *pool);

/* Returns the value of a member below others, given as `http.cors`; NULL:
 * absent or null. Borrowed from the file. */
json_object *agent_member_get(json_object *file, const char *path);

#endif
