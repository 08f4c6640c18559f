/* SPDX-License-Identifier: Apache-2.0 */
/* Watching runners while they live, and who has to leave. */
#ifndef AGENT_SUPERVISOR_RUNNER_CARE_H
#define AGENT_SUPERVISOR_RUNNER_CARE_H

#include "runner.h"

/* Pings, limits and memory; called each second. */
void agent_runner_tick(agent_supervisor_t *sv);

/* Takes no more runs, and is killed when its others ended. The second says so
 * in the log. */
void agent_runner_leave(agent_supervisor_t *sv, agent_runner_t *runner);
void agent_runner_recycle(agent_supervisor_t *sv, agent_runner_t *runner);

/* Kills the ordinary runner that began to leave first, unless one that was
 * killed is about to end: those that leave are as many as are to take runs, at
 * most, since each takes memory. */
void agent_runner_make_room(agent_supervisor_t *sv);

/* Where all runners for suspects are taken, clears those whose runs have been
 * executed long enough; called each second. */
void agent_runner_tick_trials(agent_supervisor_t *sv);

void agent_runner_signal_all(agent_supervisor_t *sv, int number);

/* All runners finish what they have and end. */
void agent_runner_drain_all(agent_supervisor_t *sv);

#endif
