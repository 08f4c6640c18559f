/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the deployment API: read, do, send. routes.c says which
 * path leads where. */
#ifndef AGENT_HANDLERS_H
#define AGENT_HANDLERS_H

#include "../core/wake.h"
#include "../http/router.h"

extern const agent_route_t agent_routes[];

int agent_handle_thread_create(agent_call_t *call);
int agent_handle_thread_get(agent_call_t *call);
int agent_handle_thread_delete(agent_call_t *call);
int agent_handle_state_get(agent_call_t *call);
int agent_handle_state_at(agent_call_t *call);
int agent_handle_thread_stream(agent_call_t *call);
int agent_handle_run_create(agent_call_t *call);
int agent_handle_run_list(agent_call_t *call);
int agent_handle_run_get(agent_call_t *call);
int agent_handle_run_delete(agent_call_t *call);
int agent_handle_run_cancel(agent_call_t *call);
int agent_handle_run_join(agent_call_t *call);
int agent_handle_run_stream(agent_call_t *call);
int agent_handle_run_create_wait(agent_call_t *call);
int agent_handle_run_create_stream(agent_call_t *call);
int agent_handle_stateless_create_wait(agent_call_t *call);
int agent_handle_stateless_create_stream(agent_call_t *call);
int agent_handle_stateless_join(agent_call_t *call);
int agent_handle_stateless_stream(agent_call_t *call);
int agent_handle_stateless_create(agent_call_t *call);
int agent_handle_run_batch(agent_call_t *call);
int agent_handle_run_cancel_many(agent_call_t *call);
int agent_handle_ok(agent_call_t *call);
int agent_handle_info(agent_call_t *call);

/*
 * Tells the supervisor of this host that a run became ready or must stop: a
 * letter of core/wake.h. A lost message costs at most its 1 s poll.
 */
void agent_wake_supervisor(const agent_call_t *call, char what);

/*
 * Has the supervisor tell all waiting requests, of every host, that the threads
 * and runs of a write's *changed have news; NULL: none. What is lost costs a
 * waiting request one heartbeat.
 */
void agent_report_changed(const agent_call_t *call, const char *changed);

/*
 * Creates the run that the request asks for and wakes the supervisor: *body is
 * its record, call->ids[2] its id.
 */
apr_status_t agent_create_run(const char **body, agent_call_t *call);

/*
 * The same for a run without a thread of the client's (POST /runs...):
 * call->ids[1] is the id of its hidden thread.
 */
apr_status_t agent_create_stateless_run(const char **body, agent_call_t *call);

/*
 * For a path that names a run alone (/runs/{run_id}...): moves the run's id
 * from call->ids[1] to [2] and sets [1] to its thread's. RUN_NOT_FOUND.
 */
apr_status_t agent_find_run(agent_call_t *call);

#endif
