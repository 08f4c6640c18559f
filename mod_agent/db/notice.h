/* SPDX-License-Identifier: Apache-2.0 */
/* The reason that a server gives before it closes a connection; connection.c
 * reads it. */
#ifndef AGENT_DB_NOTICE_H
#define AGENT_DB_NOTICE_H

#include "query.h"

/* Whether the server closes the connection because another one of its processes
 * crashed (57P02). The connection of the process that crashed gets no notice.
 * Reads the notice of an idle connection. */
bool agent_db_notice_is_crash(agent_db_t *db);

#endif
