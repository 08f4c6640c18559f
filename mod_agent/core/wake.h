/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The datagrams that the server's children send to the supervisor of their
 * host. Each is a hint that may be lost: the supervisor looks each second, a
 * waiting request at each heartbeat.
 */
#ifndef AGENT_CORE_WAKE_H
#define AGENT_CORE_WAKE_H

#include "uuid.h"

/* A run became ready. */
#define AGENT_WAKE_READY 'R'
/* A run that executes must stop. */
#define AGENT_WAKE_CANCEL 'C'
/* Followed by ids of threads and runs, separated by spaces, that requests may
 * wait for: they changed in the database. */
#define AGENT_WAKE_NEWS 'N'

/* Longest datagram: 100 ids, each with the space behind it. */
#define AGENT_WAKE_BYTES (1 + 100 * AGENT_UUID_SIZE)

#endif
