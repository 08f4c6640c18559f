/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of each deployment; see backlog.h. */
#include "backlog.h"

#include <string.h>

#include <apr_strings.h>

/* The bytes of a deployment, at least one. */
typedef struct agent_backlog_t {
    APR_RING_ENTRY(agent_backlog_t) link;
    char deployment_id[AGENT_UUID_SIZE];
    apr_size_t bytes[AGENT_BACKLOG_KINDS];
    /* The turn in which its next room was taken. */
    apr_uint64_t taken_in;
    /* Among the slow ones, once it was slow: until when, and the weight. */
    APR_RING_ENTRY(agent_backlog_t) slow_link;
    agent_pace_t pace;
} agent_backlog_t;

typedef APR_RING_HEAD(agent_backlog_ring_t,
                      agent_backlog_t) agent_backlog_ring_t;

struct agent_backlog_table_t {
    apr_hash_t *by_deployment;
    /* Memory of those without bytes, used again. */
    agent_backlog_ring_t unused;
    agent_backlog_ring_t slow;
    apr_uint64_t turn;
};

static const agent_backlog_t nothing;

void agent_backlog_init(agent_batch_queue_t *queue)
{
    apr_pool_t *pool = queue->context->pool;

    queue->backlogs = apr_pcalloc(pool, sizeof(*queue->backlogs));
    queue->backlogs->by_deployment = apr_hash_make(pool);
    queue->backlogs->turn = 1;
    APR_RING_INIT(&queue->backlogs->unused, agent_backlog_t, link);
    APR_RING_INIT(&queue->backlogs->slow, agent_backlog_t, slow_link);
}

static agent_backlog_t *find(const agent_batch_queue_t *queue,
                             const char *deployment_id)
{
    return apr_hash_get(queue->backlogs->by_deployment, deployment_id,
                        APR_HASH_KEY_STRING);
}

/* For a deployment without bytes too. */
static const agent_backlog_t *look_up(const agent_batch_queue_t *queue,
                                      const char *deployment_id)
{
    const agent_backlog_t *backlog = find(queue, deployment_id);

    return backlog != NULL ? backlog : &nothing;
}

static agent_backlog_t *make_backlog(agent_batch_queue_t *queue,
                                     const char *deployment_id)
{
    agent_backlog_ring_t *unused = &queue->backlogs->unused;
    agent_backlog_t *backlog = APR_RING_FIRST(unused);

    if (APR_RING_EMPTY(unused, agent_backlog_t, link)) {
        backlog = apr_palloc(queue->context->pool, sizeof(*backlog));
    }
    else {
        APR_RING_REMOVE(backlog, link);
    }
    memset(backlog, 0, sizeof(*backlog));
    apr_cpystrn(backlog->deployment_id, deployment_id,
                sizeof(backlog->deployment_id));
    apr_hash_set(queue->backlogs->by_deployment, backlog->deployment_id,
                 APR_HASH_KEY_STRING, backlog);
    return backlog;
}

/* The sum over all deployments. */
static apr_size_t *find_sum(agent_batch_queue_t *queue,
                            agent_backlog_kind_t kind)
{
    switch (kind) {
    case AGENT_BACKLOG_SHARED:
        return &queue->shared_bytes;
    case AGENT_BACKLOG_DEDICATED:
        return &queue->dedicated_bytes;
    case AGENT_BACKLOG_CREDIT:
        return &queue->credit_bytes;
    case AGENT_BACKLOG_WEIGHT:
        break;
    }
    return &queue->shared_weight;
}

void agent_backlog_add(agent_batch_queue_t *queue, const char *deployment_id,
                       agent_backlog_kind_t kind, apr_size_t bytes)
{
    agent_backlog_t *backlog = find(queue, deployment_id);

    if (bytes == 0) {
        return;
    }
    if (backlog == NULL) {
        backlog = make_backlog(queue, deployment_id);
    }
    backlog->bytes[kind] += bytes;
    *find_sum(queue, kind) += bytes;
}

void agent_backlog_remove(agent_batch_queue_t *queue, const char *deployment_id,
                          agent_backlog_kind_t kind, apr_size_t bytes)
{
    agent_backlog_t *backlog = find(queue, deployment_id);

    if (bytes == 0 || backlog == NULL) {
        return;
    }
    backlog->bytes[kind] -= bytes;
    *find_sum(queue, kind) -= bytes;
    for (int i = 0; i < AGENT_BACKLOG_KINDS; i++) {
        if (backlog->bytes[i] > 0) {
            return;
        }
    }
    if (backlog->pace.limit > 0) {
        APR_RING_REMOVE(backlog, slow_link);
    }
    apr_hash_set(queue->backlogs->by_deployment, backlog->deployment_id,
                 APR_HASH_KEY_STRING, NULL);
    APR_RING_INSERT_TAIL(&queue->backlogs->unused, backlog, agent_backlog_t,
                         link);
}

agent_backlog_kind_t agent_backlog_find_kind(const agent_batch_queue_t *queue,
                                             const agent_lease_t *lease,
                                             apr_size_t length)
{
    bool is_dedicated = length > AGENT_BATCH_LONG_LINE || lease->is_refused
        || agent_pace_is_dedicated(&lease->pace, queue->context->now)
        || (apr_hash_count(queue->dedicated) > 0
            && apr_hash_get(queue->dedicated, lease->key.run_id, 36) != NULL);

    return is_dedicated ? AGENT_BACKLOG_DEDICATED : AGENT_BACKLOG_SHARED;
}

/* ---- shares ---- */

/* Half of what others leave of the room. */
static apr_size_t half_of_rest(apr_size_t room, apr_size_t others)
{
    return others < room ? (room - others) / 2 : 0;
}

static bool may_add(apr_size_t own, apr_size_t bytes, apr_size_t most)
{
    return own == 0 || own + bytes <= most;
}

bool agent_backlog_has_share(const agent_batch_queue_t *queue,
                             const char *deployment_id,
                             agent_backlog_kind_t kind, apr_size_t run_bytes,
                             apr_size_t bytes)
{
    const apr_size_t *of = look_up(queue, deployment_id)->bytes;
    bool is_shared = kind == AGENT_BACKLOG_SHARED;
    apr_size_t room = is_shared ? AGENT_BATCH_MAX_SHARED
                                : AGENT_BATCH_MAX_DEDICATED;
    apr_size_t all = is_shared ? queue->shared_bytes
                               : queue->dedicated_bytes + queue->credit_bytes;
    apr_size_t own = is_shared
        ? of[AGENT_BACKLOG_SHARED]
        : of[AGENT_BACKLOG_DEDICATED] + of[AGENT_BACKLOG_CREDIT];
    apr_size_t most = half_of_rest(room, all - own);
    apr_size_t other_runs = own > run_bytes ? own - run_bytes : 0;

    return may_add(own, bytes, most)
        && may_add(run_bytes, bytes, half_of_rest(most, other_runs));
}

bool agent_backlog_has_share_without_credit(const agent_batch_queue_t *queue,
                                            const char *deployment_id,
                                            apr_size_t bytes)
{
    const apr_size_t *of = look_up(queue, deployment_id)->bytes;
    apr_size_t others = queue->dedicated_bytes + queue->credit_bytes
        - of[AGENT_BACKLOG_DEDICATED] - of[AGENT_BACKLOG_CREDIT];

    return may_add(of[AGENT_BACKLOG_DEDICATED], bytes,
                   half_of_rest(AGENT_BATCH_MAX_DEDICATED, others));
}

bool agent_backlog_is_half_free(const agent_batch_queue_t *queue,
                                const char *deployment_id, apr_size_t bytes)
{
    apr_size_t own = look_up(queue, deployment_id)
                         ->bytes[AGENT_BACKLOG_DEDICATED];
    apr_size_t most = half_of_rest(AGENT_BATCH_MAX_DEDICATED,
                                   queue->dedicated_bytes - own);

    return own + bytes == 0 || own + bytes < most / 2;
}

/* ---- slow deployments ---- */

void agent_backlog_set_slow(agent_batch_queue_t *queue,
                            const char *deployment_id, apr_size_t weight)
{
    agent_backlog_t *backlog = find(queue, deployment_id);

    if (backlog == NULL) {
        return;
    }
    if (backlog->pace.limit == 0) {
        APR_RING_INSERT_TAIL(&queue->backlogs->slow, backlog, agent_backlog_t,
                             slow_link);
    }
    backlog->pace.limit = weight > 0 ? weight : 1;
    agent_pace_dedicate(&backlog->pace, queue->context->now);
}

bool agent_backlog_is_slow(const agent_batch_queue_t *queue,
                           const char *deployment_id)
{
    return agent_pace_is_dedicated(&look_up(queue, deployment_id)->pace,
                                   queue->context->now);
}

bool agent_backlog_is_any_slow(const agent_batch_queue_t *queue)
{
    const agent_backlog_t *backlog;
    double part = 0;

    AGENT_RING_EACH(backlog, &queue->backlogs->slow, agent_backlog_t, slow_link)
    {
        if (agent_pace_is_dedicated(&backlog->pace, queue->context->now)) {
            part += (double)backlog->bytes[AGENT_BACKLOG_WEIGHT]
                / (double)backlog->pace.limit;
        }
    }
    return part > 1;
}

/* ---- turns ---- */

void agent_backlog_take_room(agent_batch_queue_t *queue,
                             const char *deployment_id)
{
    agent_backlog_t *backlog = find(queue, deployment_id);

    if (backlog != NULL) {
        backlog->taken_in = queue->backlogs->turn;
    }
}

bool agent_backlog_is_room_taken(const agent_batch_queue_t *queue,
                                 const char *deployment_id)
{
    return look_up(queue, deployment_id)->taken_in == queue->backlogs->turn;
}

void agent_backlog_begin_turn(agent_batch_queue_t *queue)
{
    queue->backlogs->turn++;
}
