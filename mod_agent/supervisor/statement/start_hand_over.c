/* SPDX-License-Identifier: Apache-2.0 */
/* Handing start lines to runners; see start.h. */
#include "start.h"

#include <string.h>

#include "../../core/raw.h"
#include "../runner/protocol/protocol.h"
#include "../runner/run/run_end.h"
#include "start_check.h"

static void announce(agent_runs_t *runs, agent_lease_t *lease)
{
    apr_pool_t *pool;
    const char *line;

    if (lease->is_call) {
        return;
    }
    apr_pool_create(&pool, runs->context->pool);
    line = agent_protocol_metadata(&lease->key, lease->attempt, pool);
    agent_batch_add(&runs->batches, lease, AGENT_ITEM_METADATA, line,
                    strlen(line), -1);
    apr_pool_destroy(pool);
}

/* Keeps the checkpoint of the line: a runner can request no other. */
static void begin_requests(agent_lease_t *lease, const char *start)
{
    agent_raw_t checkpoint = agent_raw_get(agent_raw_read(start), "checkpoint");
    agent_raw_t id = agent_raw_get(checkpoint, "checkpoint_id");

    agent_runner_request_begin(lease,
                               agent_raw_kind(id) == AGENT_RAW_STRING
                                       && id.length == AGENT_UUID_SIZE + 1
                                   ? id.text + 1
                                   : NULL);
}

void agent_start_hand_over(agent_runs_t *runs, agent_lease_t *lease,
                           const char *start)
{
    agent_buffer_t *input = agent_runner_input(lease->group->runner);
    apr_size_t length = strlen(start);

    announce(runs, lease);
    if (!agent_start_check_line(runs, lease, start, length)) {
        agent_run_end_detach(runs, lease);
        return;
    }
    lease->start_bytes = length;
    lease->start_retry = (agent_retry_t){0};
    begin_requests(lease, start);
    agent_lease_start(&runs->leases, lease);
    agent_buffer_append(input, start, length);
    agent_buffer_append(input, "\n", 1);
}
