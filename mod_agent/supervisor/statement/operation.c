/* SPDX-License-Identifier: Apache-2.0 */
/* Which operation of a connection is next; see operation.h. */
#include "operation.h"

#include "../../core/clock.h"
#include "../base/order.h"

static bool precedes(const agent_operation_entry_t *entry,
                     const agent_operation_entry_t *other)
{
    if (entry->operation->is_urgent != other->operation->is_urgent) {
        return entry->operation->is_urgent;
    }
    return entry->last_statement < other->last_statement;
}

agent_operation_entry_t *agent_operation_choose(
    const apr_array_header_t *entries, apr_time_t now, apr_time_t *next)
{
    agent_operation_entry_t *best = NULL;

    *next = AGENT_CLOCK_NEVER;
    for (int i = 0; i < entries->nelts; i++) {
        agent_operation_entry_t *entry = &APR_ARRAY_IDX(
            entries, i, agent_operation_entry_t);
        apr_time_t due = entry->operation->due(entry->part);

        if (due > now) {
            *next = AGENT_MIN(due, *next);
        }
        else if (best == NULL || precedes(entry, best)) {
            best = entry;
        }
    }
    return best;
}
