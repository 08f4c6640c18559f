/* SPDX-License-Identifier: Apache-2.0 */
/* Positions in a thread's stream. */
#ifndef AGENT_MODEL_THREAD_CURSOR_H
#define AGENT_MODEL_THREAD_CURSOR_H

#include <stdbool.h>

#include <apr.h>

/*
 * The last event sent: the number of its run in the thread, and its number in
 * the run. As text "<run>-<seq>", the id of that event. {n, -1}: before the
 * first event of run n; {0, -1}: before the oldest stored event.
 */
typedef struct agent_thread_cursor_t {
    apr_int64_t run;
    apr_int64_t seq;
} agent_thread_cursor_t;

/* Reads an event's id, or "-" for {0, -1}; false and no change for any other
 * text. */
bool agent_thread_cursor_read(agent_thread_cursor_t *cursor, const char *text);

#endif
