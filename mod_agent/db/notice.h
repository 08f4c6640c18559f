/* SPDX-License-Identifier: Apache-2.0 */
/* The reason that a server reports before it closes a connection, as
 * connection.c has read it. */
#ifndef AGENT_DB_NOTICE_H
#define AGENT_DB_NOTICE_H

#include "query.h"

/* Whether the server closes the connection because another one of its processes
 * crashed (57P02). The connection of the process that crashed gets no notice.
 * Reads the notice of an idle connection. */
bool agent_db_notice_is_crash(agent_db_t *db);

/* Whether the last statement of agent_db_send() failed with a PANIC, at which
 * the server restarts; with that or FATAL, after which it closes the
 * connection. */
bool agent_db_is_panic(const agent_db_t *db);
bool agent_db_is_over(const agent_db_t *db);

/* Whether it failed with ERROR, after which the connection stays usable; also
 * false if the severity is unknown, as with some poolers. */
bool agent_db_is_error(const agent_db_t *db);

#endif
