/* SPDX-License-Identifier: Apache-2.0 */
/* Connection strings of libpq; see conninfo.h. */
#include "conninfo.h"

#include <string.h>

#include <libpq-fe.h>

bool agent_conninfo_has_user(const char *conninfo, const char *user)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    bool has = false;

    for (const PQconninfoOption *option = options;
         option != NULL && option->keyword != NULL; option++) {
        has = has
            || (strcmp(option->keyword, "user") == 0 && option->val != NULL
                && strcmp(option->val, user) == 0);
    }
    PQconninfoFree(options);
    return has;
}
