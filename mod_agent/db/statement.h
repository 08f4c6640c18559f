/* SPDX-License-Identifier: Apache-2.0 */
/* Statements as constants. */
#ifndef AGENT_DB_STATEMENT_H
#define AGENT_DB_STATEMENT_H

#include <stdbool.h>

/*
 * A statement: the call of one SQL function. A static
 * constant beside the function that sends it; connections that prepare it
 * identify it by its address. It names objects with their schema and casts
 * nothing, since the owner of the database may have set the search path.
 */
typedef struct agent_statement_t {
    /* Name of the prepared statement; NULL: not prepared (agent_db_send()
     * only). */
    const char *name;
    int params;
    /* agent_db_query() may execute it again after a lost connection: a query,
     * or a write whose second execution changes nothing. */
    bool is_repeatable;
    const char *sql;
} agent_statement_t;

/*
 * Select list items that override settings of a role or a database: all text is
 * UTF-8, and every function must see what a lock waited for.
 */
#define AGENT_DB_SESSION_SQL                                                   \
    "pg_catalog.set_config('client_encoding', 'UTF8', false), "                \
    "pg_catalog.set_config('default_transaction_isolation', "                  \
    "'read committed', false), "

#endif
