/* SPDX-License-Identifier: Apache-2.0 */
/* Deletions of threads, runs and assistants, a piece in each turn. */
#ifndef AGENT_STREAM_DELETION_H
#define AGENT_STREAM_DELETION_H

#include <stdbool.h>

#include <apr_tables.h>

#include "../http/call.h"

/*
 * Each deletes and responds with 204. A deletion of one piece needs no turn;
 * the others wait as other requests do, whose turns come between two pieces.
 * After its first piece a thread does not exist for clients: when too many
 * requests wait, or the child stops, the response is 204 too; then, and when
 * the client disconnects, the supervisor deletes the rest. An assistant stays
 * in these cases, with the threads that were not deleted yet: 503. So does a
 * run, as it was: its last piece deletes it, after the others have found the
 * checkpoint that becomes the thread's head. Returns what the handler returns
 * to httpd.
 */

/* The thread call->ref. */
int agent_deletion_delete_thread(agent_call_t *call);

/* The run call->ref, which is final. */
int agent_deletion_delete_run(agent_call_t *call);

/*
 * Deletes these threads (texts in the call's pool, at least one), and responds
 * with the number of those that existed. In turns, as above; when it is left,
 * threads that have not been reached are left as they are: 503. keeps_latest:
 * deletes all but their last states; threads with unfinished runs are passed
 * over, and not counted.
 */
int agent_deletion_prune_threads(agent_call_t *call,
                                 const apr_array_header_t *thread_ids,
                                 bool keeps_latest);

/* The assistant call->assistant_id; with_threads: after the threads whose last
 * run it was. */
int agent_deletion_delete_assistant(agent_call_t *call, bool with_threads);

#endif
