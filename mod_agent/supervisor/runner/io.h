/* SPDX-License-Identifier: Apache-2.0 */
/* The pipes of runners, for the loop and runner*.c. */
#ifndef AGENT_SUPERVISOR_RUNNER_IO_H
#define AGENT_SUPERVISOR_RUNNER_IO_H

#include "runner.h"

/* Adds what all runners wait for to the poll set (runner_io.c). */
void agent_runner_poll(agent_supervisor_t *sv);
/* Tries again to take the output of runners that are held. */
void agent_runner_resume(agent_supervisor_t *sv);

/* Reads to the end, or what is there (runner_io.c). */
void agent_runner_read_rest(agent_supervisor_t *sv, agent_runner_t *runner);
void agent_runner_close(agent_runner_t *runner);

/* Whether a line of that length of a run could be taken; false: only later. */
bool agent_runner_has_room(agent_supervisor_t *sv, const agent_runner_t *runner,
                           const agent_lease_key_t *key, apr_size_t length);

/* Takes a whole line without its newline (runner_line.c). False: no room for it
 * now, and runner->held_key is its run; call again with the same line when
 * there is. With is_last it is always taken. */
bool agent_runner_take_line(agent_supervisor_t *sv, agent_runner_t *runner,
                            const char *text, apr_size_t length, bool is_last);

/* What came on its standard output and error (runner_log.c). */
void agent_runner_take_log(agent_supervisor_t *sv, agent_runner_t *runner,
                           const char *bytes, apr_size_t length);
/* Reports what was left out, now and then. */
void agent_runner_tick_log(agent_supervisor_t *sv, agent_runner_t *runner);
void agent_runner_end_log(agent_supervisor_t *sv, agent_runner_t *runner);

/* False while we do not read it, or have stopped it: then no answer is due. */
bool agent_runner_may_answer(const agent_supervisor_t *sv,
                             const agent_runner_t *runner);

#endif
