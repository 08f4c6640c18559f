/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of releases; see release.h. */
#include "release.h"

#include <string.h>

/* Runs of one statement. */
#define MAX_RELEASES 200

void agent_release_init(agent_release_queue_t *queue,
                        const agent_context_t *context)
{
    queue->context = context;
    APR_RING_INIT(&queue->waiting, agent_release_t, link);
    APR_RING_INIT(&queue->unused, agent_release_t, link);
    agent_adaptive_limit_init(&queue->limit, MAX_RELEASES);
}

bool agent_release_is_empty(const agent_release_queue_t *queue)
{
    return APR_RING_EMPTY(&queue->waiting, agent_release_t, link);
}

static agent_release_t *add_release(agent_release_queue_t *queue,
                                    const agent_lease_t *lease,
                                    const char *reason)
{
    agent_release_t *release;

    if (APR_RING_EMPTY(&queue->unused, agent_release_t, link)) {
        release = apr_palloc(queue->context->pool, sizeof(*release));
    }
    else {
        release = APR_RING_FIRST(&queue->unused);
        APR_RING_REMOVE(release, link);
    }
    memset(release, 0, sizeof(*release));
    release->key = lease->key;
    memcpy(release->deployment_id, lease->deployment_id, AGENT_UUID_SIZE);
    release->reason = reason;
    APR_RING_INSERT_TAIL(&queue->waiting, release, agent_release_t, link);
    return release;
}

void agent_release_add(agent_release_queue_t *queue, const agent_lease_t *lease,
                       bool counted, const char *reason)
{
    agent_release_t *release = add_release(queue, lease, reason);

    release->is_counted = counted;
    release->max_shared = lease->next_max_shared;
}

void agent_release_give_up(agent_release_queue_t *queue,
                           const agent_lease_t *lease, const char *error,
                           const char *message)
{
    add_release(queue, lease, message)->error = error;
}

void agent_release_remove(agent_release_queue_t *queue,
                          agent_release_t *release)
{
    APR_RING_REMOVE(release, link);
    APR_RING_INSERT_TAIL(&queue->unused, release, agent_release_t, link);
}

void agent_release_clear(agent_release_queue_t *queue)
{
    APR_RING_CONCAT(&queue->unused, &queue->waiting, agent_release_t, link);
}
