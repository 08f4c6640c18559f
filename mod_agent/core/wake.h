/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams from httpd's children to the supervisor of their host, sent after a
 * commit. Each is a hint that may be lost: the supervisor polls every second,
 * and waiting requests poll at some of their heartbeats.
 */
#ifndef AGENT_CORE_WAKE_H
#define AGENT_CORE_WAKE_H

#include "uuid.h"

/* A run became ready; followed by the id of its deployment. */
#define AGENT_WAKE_READY 'R'
/* A run that executes must stop. */
#define AGENT_WAKE_CANCEL 'C'
/* Followed by the id of a deployment and the ids of its threads and runs that
 * have changed, separated by spaces; the supervisor notifies the requests that
 * wait for them. */
#define AGENT_WAKE_CHANGED 'N'

/* Bytes of the longest datagram: that of a deployment and 100 more ids, each
 * followed by a space. */
#define AGENT_WAKE_BYTES (1 + 101 * AGENT_UUID_SIZE)

/* Fewer datagrams than this do not fill a socket: a reader that finds this many
 * at once must assume that others were lost. Where Linux bounds their number it
 * is 10 (net.unix.max_dgram_qlen); in a socket pair it bounds their bytes. */
#define AGENT_WAKE_MANY 8

/*
 * Each sends without blocking; fd is the socket's write end, -1 sends nothing.
 * changed: the ids for AGENT_WAKE_CHANGED, NULL for none.
 */
void agent_wake_ready(int fd, const char *deployment_id, const char *changed);
void agent_wake_cancel(int fd, const char *deployment_id, const char *changed);
void agent_wake_changed(int fd, const char *deployment_id, const char *changed);

#endif
