/* SPDX-License-Identifier: Apache-2.0 */
/* GET /threads/{thread_id}/runs/{run_id}/join: wait for a run's values. */
#include "handlers.h"

#include "../http/response.h"
#include "await.h"

int agent_handle_run_join(agent_call_t *call)
{
    agent_response_locate(call, call->ids[1], call->ids[2], NULL);
    return agent_await_values(call);
}
