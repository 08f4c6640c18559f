/* SPDX-License-Identifier: Apache-2.0 */
/* Checks start lines; see start_check.h. */
#include "start_check.h"

#include <apr_strings.h>

#include "../../core/raw.h"
#include "../../core/scan.h"
#include "../runner/protocol/protocol.h"
#include "../runner/run/run_end.h"
#include "start.h"

static void refuse(agent_runs_t *runs, agent_lease_t *lease, const char *error,
                   const char *message)
{
    agent_run_end_fail(runs, lease, "error", error, message);
}

static const char *print_scan_error(const agent_scan_t *scan, apr_pool_t *pool)
{
    return apr_psprintf(pool, "No runner can be given this: %s %s.",
                        agent_scan_pointer(scan, pool),
                        agent_scan_reason(scan->code));
}

/* Whether the request names a checkpoint that was deleted since. Without it the
 * run would replace the thread's state by one that begins empty. */
static bool refuse_deleted(agent_runs_t *runs, agent_lease_t *lease,
                           const char *start)
{
    agent_raw_t checkpoint = agent_raw_get(agent_raw_read(start), "checkpoint");

    if (agent_raw_kind(agent_raw_get(checkpoint, "deleted"))
        == AGENT_RAW_NONE) {
        return false;
    }
    refuse(runs, lease, "StateUnavailableError",
           "The checkpoint from which the run was to start was deleted.");
    return true;
}

bool agent_start_check_line(agent_runs_t *runs, agent_lease_t *lease,
                            const char *start, apr_size_t length)
{
    agent_scan_t scan = {.max_weight = AGENT_START_WEIGHT};
    apr_pool_t *pool;

    if (length > AGENT_PROTOCOL_MAX_LINE) {
        refuse(runs, lease, "StateTooLargeError",
               "The run's input is larger than a runner can be given (8 MiB).");
        return false;
    }
    if (agent_scan_json(&scan, start, length)) {
        return !refuse_deleted(runs, lease, start);
    }
    if (scan.code == AGENT_SCAN_TOO_HEAVY) {
        refuse(runs, lease, "StateTooLargeError",
               "The run's input has more values than a runner can hold: in "
               "memory they would take more than 384 MB.");
        return false;
    }
    apr_pool_create(&pool, runs->context->pool);
    refuse(runs, lease, "InvalidStartError", print_scan_error(&scan, pool));
    apr_pool_destroy(pool);
    return false;
}
