/* SPDX-License-Identifier: Apache-2.0 */
/* The table of leases; see lease.h. */
#include "lease.h"

#include <string.h>

/* Each quarantine of a run takes this many times as long as the one before, at
 * most MAX_QUARANTINE, which no execution exceeds. */
#define QUARANTINE_FACTOR 6
#define MAX_QUARANTINE    apr_time_from_sec(7 * 86400)

void agent_lease_init(agent_lease_table_t *table,
                      const agent_context_t *context)
{
    table->context = context;
    table->by_key = apr_hash_make(context->pool);
    APR_RING_INIT(&table->unused, agent_lease_t, link);
}

void agent_lease_group_init(agent_lease_group_t *group, agent_runner_t *runner,
                            apr_interval_time_t run_timeout)
{
    memset(group, 0, sizeof(*group));
    group->runner = runner;
    group->run_timeout = run_timeout;
    APR_RING_INIT(&group->leases, agent_lease_t, link);
    for (int i = 0; i < AGENT_CREDIT_CLASSES; i++) {
        APR_RING_INIT(&group->classes[i].waiting, agent_lease_t, credit.link);
    }
    for (int i = 0; i < AGENT_RUNNER_REQUEST_CLASSES; i++) {
        APR_RING_INIT(&group->requests[i].waiting, agent_lease_t, request.link);
    }
}

static agent_lease_t *take_unused(agent_lease_table_t *table)
{
    agent_lease_t *lease;

    if (APR_RING_EMPTY(&table->unused, agent_lease_t, link)) {
        return apr_palloc(table->context->pool, sizeof(*lease));
    }
    lease = APR_RING_FIRST(&table->unused);
    APR_RING_REMOVE(lease, link);
    return lease;
}

static void attach(agent_lease_table_t *table, agent_lease_t *lease,
                   agent_lease_group_t *group)
{
    lease->group = group;
    APR_RING_INSERT_TAIL(&group->leases, lease, agent_lease_t, link);
    group->active++;
    table->waiting++;
}

agent_lease_t *agent_lease_add(agent_lease_table_t *table,
                               const agent_lease_key_t *key,
                               agent_lease_group_t *group)
{
    agent_lease_t *lease = take_unused(table);

    memset(lease, 0, sizeof(*lease));
    lease->key = *key;
    lease->state = AGENT_LEASE_HELD;
    lease->quarantine_end = AGENT_CLOCK_NEVER;
    lease->deadline = AGENT_CLOCK_NEVER;
    lease->grace_at = AGENT_CLOCK_NEVER;
    if (group != NULL) {
        attach(table, lease, group);
    }
    table->held++;
    apr_hash_set(table->by_key, &lease->key, sizeof(lease->key), lease);
    return lease;
}

static bool is_same_run(const agent_lease_key_t *a, const agent_lease_key_t *b)
{
    return memcmp(a->run_id, b->run_id, sizeof(a->run_id)) == 0;
}

agent_lease_t *agent_lease_find(const agent_lease_table_t *table,
                                const agent_lease_key_t *key)
{
    return apr_hash_get(table->by_key, key, sizeof(*key));
}

agent_lease_t *agent_lease_find_earlier(const agent_lease_table_t *table,
                                        const agent_lease_key_t *key)
{
    agent_lease_t *last = NULL;
    apr_pool_t *pool;
    apr_hash_index_t *at;

    if (key->epoch == 1) {
        return NULL;
    }
    apr_pool_create(&pool, table->context->pool);
    for (at = apr_hash_first(pool, table->by_key); at != NULL;
         at = apr_hash_next(at)) {
        agent_lease_t *lease = apr_hash_this_val(at);

        if (lease->group != NULL && lease->key.epoch < key->epoch
            && is_same_run(&lease->key, key)
            && (last == NULL || lease->key.epoch > last->key.epoch)) {
            last = lease;
        }
    }
    apr_pool_destroy(pool);
    return last;
}

bool agent_lease_waits_for_previous(const agent_lease_t *lease)
{
    const agent_lease_t *other;

    if (!lease->is_repeated || lease->group == NULL) {
        return false;
    }
    AGENT_RING_EACH(other, &lease->group->leases, agent_lease_t, link)
    {
        if (other != lease && other->is_started
            && is_same_run(&other->key, &lease->key)) {
            return true;
        }
    }
    return false;
}

bool agent_lease_waits(const agent_lease_t *lease)
{
    return lease->state == AGENT_LEASE_HELD && !lease->is_started;
}

static void drop_if_over(agent_lease_table_t *table, agent_lease_t *lease)
{
    if (lease->state != AGENT_LEASE_GONE || lease->group != NULL) {
        return;
    }
    apr_hash_set(table->by_key, &lease->key, sizeof(lease->key), NULL);
    APR_RING_INSERT_TAIL(&table->unused, lease, agent_lease_t, link);
}

/* Takes the lease out of the count of those that wait for their start line. */
static void uncount_waiting(agent_lease_table_t *table,
                            const agent_lease_t *lease)
{
    if (agent_lease_waits(lease) && lease->group != NULL) {
        table->waiting--;
    }
}

static apr_time_t deadline_of(const agent_context_t *context,
                              const agent_lease_group_t *group)
{
    return group->run_timeout > 0 ? context->now + group->run_timeout
                                  : AGENT_CLOCK_NEVER;
}

/* Longer each time, so that a run that kills its runners only later can be
 * passed a few times at most. */
static apr_interval_time_t quarantine_of(const agent_context_t *context,
                                         int quarantines_passed)
{
    apr_interval_time_t quarantine = context->timing.quarantine;

    for (int i = 0; i < quarantines_passed && quarantine < MAX_QUARANTINE;
         i++) {
        quarantine *= QUARANTINE_FACTOR;
    }
    return quarantine;
}

void agent_lease_start(agent_lease_table_t *table, agent_lease_t *lease)
{
    const agent_context_t *context = table->context;

    uncount_waiting(table, lease);
    lease->is_started = true;
    lease->group->used++;
    lease->group->started_bytes += lease->start_bytes
        + lease->request.state_bytes;
    lease->deadline = deadline_of(context, lease->group);
    lease->quarantine_end = context->now
        + quarantine_of(context, lease->quarantines_passed);
}

void agent_lease_detach(agent_lease_table_t *table, agent_lease_t *lease)
{
    if (lease->group != NULL) {
        uncount_waiting(table, lease);
        APR_RING_REMOVE(lease, link);
        lease->group->active--;
        if (lease->is_started) {
            lease->group->started_bytes -= lease->start_bytes
                + lease->request.state_bytes;
        }
        lease->group = NULL;
        drop_if_over(table, lease);
    }
}

void agent_lease_set_state(agent_lease_table_t *table, agent_lease_t *lease,
                           agent_lease_state_t state)
{
    if (lease->state == AGENT_LEASE_HELD && state != AGENT_LEASE_HELD) {
        uncount_waiting(table, lease);
        table->held--;
    }
    lease->state = state;
    drop_if_over(table, lease);
}

void agent_lease_print(agent_buffer_t *items, const agent_lease_key_t *key,
                       const char *deployment_id)
{
    agent_buffer_print(items, "%s{\"d\":\"%s\",\"r\":\"%.36s\",\"e\":%d}",
                       agent_buffer_length(items) > 0 ? "," : "[",
                       deployment_id, key->run_id, (int)key->epoch);
}
