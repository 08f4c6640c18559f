/* SPDX-License-Identifier: Apache-2.0 */
/* Runs whose client left before their end. */
#ifndef AGENT_HANDLERS_ABANDON_H
#define AGENT_HANDLERS_ABANDON_H

#include "../http/call.h"

/* The query's cancel_on_disconnect; *cancels stays when it is absent. Refused
 * for another site's page. */
apr_status_t agent_abandon_read(bool *cancels, agent_call_t *call);

/* The body's on_disconnect. */
bool agent_abandon_wanted(const agent_call_t *call);

/* Cancels the run of call->ids and wakes the supervisor. */
void agent_abandon_run(agent_call_t *call, apr_pool_t *scratch);

#endif
