/* SPDX-License-Identifier: Apache-2.0 */
/* Counting text that is not in a state yet. */
#include "pending.h"

void runner_pending_set(runner_pending_t *pending, size_t *bytes, size_t now)
{
    pending->bytes = pending->bytes - *bytes + now;
    *bytes = now;
    if (now == 0 && pending->receiver == bytes) {
        pending->receiver = NULL;
    }
}

bool runner_pending_is_paused(runner_pending_t *pending, const size_t *bytes)
{
    if (*bytes <= RUNNER_PENDING_SMALL
        || (pending->bytes < pending->bytes_max && !pending->is_memory_short)) {
        return false;
    }
    if (pending->receiver == NULL) {
        pending->receiver = bytes;
    }
    return pending->receiver != bytes;
}
