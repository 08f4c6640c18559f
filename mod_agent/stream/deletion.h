/* SPDX-License-Identifier: Apache-2.0 */
/* Deletions of threads, runs and assistants, a piece in each turn. */
#ifndef AGENT_STREAM_DELETION_H
#define AGENT_STREAM_DELETION_H

#include <stdbool.h>

#include <apr_tables.h>

#include "../http/call.h"

/*
 * Each deletes and responds with 204. A deletion of one piece needs no turn;
 * the others wait, so that other requests take turns between two pieces. After
 * its first piece a thread does not exist for clients: if then too many
 * requests wait, or the child stops, the response is 204 too, and the
 * supervisor deletes the rest, as it does when the client disconnects. In these
 * cases an assistant remains, with the threads that were not deleted yet: 503.
 * So does a run, unchanged: only its last piece deletes, and those before it
 * search the checkpoint that becomes the thread's head. Returns what the
 * handler returns to httpd.
 */

/* The thread call->ref. */
int agent_deletion_delete_thread(agent_call_t *call);

/* The run call->ref, which is final. */
int agent_deletion_delete_run(agent_call_t *call);

/*
 * Deletes these threads (texts in the call's pool, at least one), and responds
 * with the number of those that existed. In turns, as above; if it ends early,
 * the remaining threads are unchanged: 503. keeps_latest: deletes all but the
 * last state of each; threads with unfinished runs are skipped and not counted.
 */
int agent_deletion_prune_threads(agent_call_t *call,
                                 const apr_array_header_t *thread_ids,
                                 bool keeps_latest);

/* The assistant call->assistant_id; with_threads: also the threads whose last
 * run was of this assistant, before it. */
int agent_deletion_delete_assistant(agent_call_t *call, bool with_threads);

#endif
