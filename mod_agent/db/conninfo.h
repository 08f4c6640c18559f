/* SPDX-License-Identifier: Apache-2.0 */
/* Connection strings of libpq. */
#ifndef AGENT_DB_CONNINFO_H
#define AGENT_DB_CONNINFO_H

#include <stdbool.h>

/* Whether the string names this user; false if libpq cannot parse it. */
bool agent_conninfo_has_user(const char *conninfo, const char *user);

#endif
