/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of releases; see release.h. */
#include "release.h"

#include <string.h>

#include <apr_strings.h>

/* Runs of one statement. */
#define MAX_RELEASES 200

void agent_release_init(agent_release_queue_t *queue,
                        const agent_context_t *context)
{
    queue->context = context;
    APR_RING_INIT(&queue->waiting, agent_release_t, link);
    APR_RING_INIT(&queue->unused, agent_release_t, link);
    queue->by_key = apr_hash_make(context->pool);
    agent_adaptive_limit_init(&queue->limit, MAX_RELEASES);
}

bool agent_release_is_empty(const agent_release_queue_t *queue)
{
    return APR_RING_EMPTY(&queue->waiting, agent_release_t, link);
}

agent_release_t *agent_release_find(const agent_release_queue_t *queue,
                                    const agent_lease_key_t *key)
{
    return apr_hash_get(queue->by_key, key, sizeof(*key));
}

static agent_release_t *make_release(agent_release_queue_t *queue,
                                     const agent_lease_key_t *key,
                                     const char *deployment_id)
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
    release->key = *key;
    apr_cpystrn(release->deployment_id, deployment_id, AGENT_UUID_SIZE);
    APR_RING_INSERT_TAIL(&queue->waiting, release, agent_release_t, link);
    apr_hash_set(queue->by_key, &release->key, sizeof(release->key), release);
    return release;
}

/* A lease has one release: the statement would requeue its run twice. */
static agent_release_t *find_or_make(agent_release_queue_t *queue,
                                     const agent_lease_key_t *key,
                                     const char *deployment_id)
{
    agent_release_t *release = agent_release_find(queue, key);

    if (release == NULL) {
        release = make_release(queue, key, deployment_id);
    }
    release->is_repeated = release->is_sent;
    return release;
}

void agent_release_add(agent_release_queue_t *queue, const agent_lease_t *lease,
                       bool counted, const char *reason)
{
    agent_release_t *release = find_or_make(queue, &lease->key,
                                            lease->deployment_id);

    release->is_counted = counted;
    release->max_shared = lease->next_max_shared;
    release->reason = reason;
}

void agent_release_give_up(agent_release_queue_t *queue,
                           const agent_lease_t *lease, const char *error,
                           const char *message)
{
    agent_release_t *release = find_or_make(queue, &lease->key,
                                            lease->deployment_id);

    release->error = error;
    release->reason = message;
}

void agent_release_add_duplicate(agent_release_queue_t *queue,
                                 const agent_lease_key_t *key,
                                 const char *deployment_id, const char *reason)
{
    agent_release_t *release = find_or_make(queue, key, deployment_id);

    if (release->reason == NULL) {
        release->reason = reason;
    }
}

void agent_release_remove(agent_release_queue_t *queue,
                          agent_release_t *release)
{
    apr_hash_set(queue->by_key, &release->key, sizeof(release->key), NULL);
    APR_RING_REMOVE(release, link);
    APR_RING_INSERT_TAIL(&queue->unused, release, agent_release_t, link);
}

void agent_release_clear(agent_release_queue_t *queue)
{
    apr_hash_clear(queue->by_key);
    APR_RING_CONCAT(&queue->unused, &queue->waiting, agent_release_t, link);
}
