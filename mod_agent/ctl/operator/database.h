/* SPDX-License-Identifier: Apache-2.0 */
/* The database commands of agentctl: a connection of an operator, and calls of
 * functions of sql/functions/operator. */
#ifndef AGENT_CTL_DATABASE_H
#define AGENT_CTL_DATABASE_H

#include "../../db/statement.h"
#include "../base/option.h"

/* The options that all of them have; for their tables. */
#define CTL_DATABASE_OPTIONS                                                   \
    {"database", "CONNINFO", CTL_DATABASE,                                     \
     "a connection string of libpq (default: the variables\n"                  \
     "of its environment: PGHOST, PGDATABASE, PGSERVICE)"},                    \
    {                                                                          \
        "json", NULL, CTL_JSON, "print records as JSON"                        \
    }

/*
 * Calls a function that returns (code, body), on a connection that is opened by
 * the first call and lives as long as the arguments' pool. Sets *body, in their
 * pool. Returns CTL_DONE; CTL_FAILED, after printing why.
 */
int ctl_database_call(const char **body, const ctl_arguments_t *arguments,
                      const agent_statement_t *statement,
                      const char *const *params);

#endif
