/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection string of libpq says. */
#ifndef AGENT_DB_CONNINFO_H
#define AGENT_DB_CONNINFO_H

#include <stdbool.h>

/* Whether the string names this user; false also where libpq cannot read it. */
bool agent_conninfo_has_user(const char *conninfo, const char *user);

#endif
