/* SPDX-License-Identifier: Apache-2.0 */
/* Delivers new events to subscribed waiters, with one query for all of them;
 * see updates.h. */
#include "updates.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/allocator.h"
#include "dispatch.h"
#include "waiter_table.h"

/* Events of one run in one query; a waiter queries the rest for itself. */
#define EVENTS_MAX 100
/* Delivered to one waiter and not taken; a client that reads more slowly makes
 * its waiter query for itself. */
#define BYTES_MAX (64 * 1024)

#define PAUSE_FROM apr_time_from_msec(5)
#define PAUSE_MAX  apr_time_from_msec(50)

typedef struct subscription_t {
    const char *deployment_id;
    const char *run_id;
    /* Events after this number are asked for. */
    apr_int64_t after;
} subscription_t;

/* The parameters of one query. */
typedef struct agent_update_set_t {
    apr_pool_t *pool;
    /* Run id -> subscription_t. */
    apr_hash_t *runs;
} update_set_t;

static update_set_t *make_set(apr_pool_t *pool)
{
    update_set_t *set = apr_palloc(pool, sizeof(*set));

    set->pool = agent_allocator_make_private(pool);
    set->runs = apr_hash_make(set->pool);
    return set;
}

void agent_updates_init(agent_updates_t *updates, agent_db_pool_t *db,
                        apr_pool_t *pool)
{
    updates->db = db;
    updates->wanted = make_set(pool);
    updates->queried = make_set(pool);
}

void agent_updates_drop_locked(agent_waiter_t *waiter)
{
    waiter->reasons &= ~(1U << AGENT_REASON_UPDATES);
    if (waiter->updates != NULL) {
        apr_pool_destroy(waiter->updates->pool);
    }
    waiter->updates = NULL;
    waiter->updates_bytes = 0;
}

/* A run is queried from the cursor of its waiter with the fewest events. */
static void add_locked(update_set_t *set, const agent_waiter_t *waiter)
{
    subscription_t *found = apr_hash_get(set->runs, waiter->params.key,
                                         APR_HASH_KEY_STRING);

    if (found == NULL) {
        found = apr_palloc(set->pool, sizeof(*found));
        found->deployment_id = apr_pstrdup(set->pool,
                                           waiter->params.deployment_id);
        found->run_id = apr_pstrdup(set->pool, waiter->params.key);
        found->after = waiter->last_event;
        apr_hash_set(set->runs, found->run_id, APR_HASH_KEY_STRING, found);
    }
    else if (waiter->last_event < found->after) {
        found->after = waiter->last_event;
    }
}

bool agent_updates_request_locked(agent_waiter_t *waiter)
{
    if (waiter->last_event == AGENT_UPDATES_NONE) {
        return false;
    }
    add_locked(waiter->registry->updates.wanted, waiter);
    return true;
}

void agent_updates_notify(agent_waiter_registry_t *registry, const char *key,
                          apr_ssize_t length, bool may_have_ended)
{
    agent_waiter_t *waiter;

    agent_lock_take(registry->lock);
    waiter = agent_waiter_table_find_locked(&registry->table, key, length);
    for (; waiter != NULL; waiter = waiter->next) {
        bool waits_for_end = waiter->last_event == AGENT_UPDATES_END_ONLY;

        if (waiter->last_event == AGENT_UPDATES_NONE
            || (waits_for_end && may_have_ended)) {
            agent_dispatch_wake_locked(waiter, AGENT_REASON_QUERY);
        }
        else if (!waits_for_end) {
            add_locked(registry->updates.wanted, waiter);
        }
    }
    agent_lock_release(registry->lock);
}

/* The waiter queries for itself, and may subscribe again after that. */
static void unsubscribe_locked(agent_waiter_t *waiter)
{
    waiter->last_event = AGENT_UPDATES_NONE;
    agent_updates_drop_locked(waiter);
    agent_dispatch_wake_locked(waiter, AGENT_REASON_QUERY);
}

static void deliver_locked(agent_waiter_t *waiter, apr_int64_t seq,
                           const char *name, const char *data)
{
    agent_run_event_t *event;

    if (waiter->updates == NULL) {
        waiter->updates = apr_array_make(
            agent_allocator_make_pool(waiter->registry->allocator), 4,
            sizeof(agent_run_event_t));
    }
    event = apr_array_push(waiter->updates);
    event->seq = seq;
    event->name = apr_pstrdup(waiter->updates->pool, name);
    event->data = apr_pstrdup(waiter->updates->pool, data);
    waiter->last_event = seq;
    waiter->updates_bytes += strlen(name) + strlen(data);
    agent_dispatch_wake_locked(waiter, AGENT_REASON_UPDATES);
}

/* Columns of agent.read_updates(). */
enum { COL_RUN, COL_SEQ, COL_NAME, COL_DATA };

/* Without an event in the row the waiters of the run have to query. */
static void deliver_row_locked(const agent_waiter_registry_t *registry,
                               const agent_db_result_t *result, int row)
{
    const char *seq_text = agent_db_value(result, row, COL_SEQ);
    const char *name = agent_db_value(result, row, COL_NAME);
    apr_int64_t seq = seq_text != NULL ? apr_atoi64(seq_text) : 0;
    agent_waiter_t *waiter = agent_waiter_table_find_locked(
        &registry->table, agent_db_value(result, row, COL_RUN),
        APR_HASH_KEY_STRING);

    for (; waiter != NULL; waiter = waiter->next) {
        if (waiter->last_event == AGENT_UPDATES_NONE) {
            continue;
        }
        if (name == NULL || seq > waiter->last_event + 1
            || waiter->updates_bytes > BYTES_MAX) {
            unsubscribe_locked(waiter);
        }
        else if (seq == waiter->last_event + 1) {
            deliver_locked(waiter, seq, name,
                           agent_db_value(result, row, COL_DATA));
        }
    }
}

static void unsubscribe_all_locked(const agent_waiter_registry_t *registry,
                                   const update_set_t *set)
{
    apr_hash_index_t *index = apr_hash_first(set->pool, set->runs);

    for (; index != NULL; index = apr_hash_next(index)) {
        agent_waiter_t *waiter = agent_waiter_table_find_locked(
            &registry->table, apr_hash_this_key(index), APR_HASH_KEY_STRING);

        for (; waiter != NULL; waiter = waiter->next) {
            unsubscribe_locked(waiter);
        }
    }
}

static const agent_statement_t read_updates_statement = {
    .name = "agent_read_updates",
    .params = 4,
    .is_repeatable = true,
    .sql = "select run_id, seq, event, data from agent.read_updates($1, $2, "
           "$3, $4)"};

static apr_status_t read_updates(agent_db_result_t **result,
                                 agent_db_pool_t *db, const update_set_t *set)
{
    apr_pool_t *pool = set->pool;
    int count = (int)apr_hash_count(set->runs);
    const char **deployments = apr_palloc(pool, count * sizeof(*deployments));
    const char **runs = apr_palloc(pool, count * sizeof(*runs));
    const char **afters = apr_palloc(pool, count * sizeof(*afters));
    apr_hash_index_t *index = apr_hash_first(pool, set->runs);
    agent_error_t *err;
    int i = 0;

    /* Bounded: one number for each waiter, in a pool of this query. */
    for (; index != NULL; index = apr_hash_next(index), i++) {
        const subscription_t *wanted = apr_hash_this_val(index);

        deployments[i] = wanted->deployment_id;
        runs[i] = wanted->run_id;
        afters[i] = apr_psprintf(pool, "%" APR_INT64_T_FMT, wanted->after);
    }
    {
        const char *params[] = {
            agent_db_array(deployments, (apr_size_t)count, pool),
            agent_db_array(runs, (apr_size_t)count, pool),
            agent_db_array(afters, (apr_size_t)count, pool),
            APR_STRINGIFY(EVENTS_MAX)};

        return agent_db_pool_query(result, db, &read_updates_statement, params,
                                   &err, pool);
    }
}

/* Under load a query is slow: a pause of the same length lets events gather,
 * so that each turn of a stream sends several. */
static void pause_after(apr_time_t began)
{
    apr_interval_time_t took = apr_time_now() - began;

    if (took > PAUSE_FROM) {
        apr_sleep(took < PAUSE_MAX ? took : PAUSE_MAX);
    }
}

static void query_and_deliver(agent_waiter_registry_t *registry)
{
    update_set_t *set = registry->updates.queried;
    agent_db_result_t *result = NULL;
    apr_status_t rv = read_updates(&result, registry->updates.db, set);

    agent_lock_take(registry->lock);
    if (rv != APR_SUCCESS) {
        unsubscribe_all_locked(registry, set);
    }
    for (int row = 0; rv == APR_SUCCESS && row < agent_db_rows(result); row++) {
        deliver_row_locked(registry, result, row);
    }
    agent_lock_release(registry->lock);
    apr_pool_clear(set->pool);
    set->runs = apr_hash_make(set->pool);
}

/* Requests from now on belong to the next query. */
static bool swap_sets(agent_waiter_registry_t *registry)
{
    agent_updates_t *updates = &registry->updates;
    update_set_t *set;

    agent_lock_take(registry->lock);
    set = updates->wanted;
    updates->wanted = updates->queried;
    updates->queried = set;
    agent_lock_release(registry->lock);
    return apr_hash_count(set->runs) > 0;
}

void agent_updates_fetch(agent_waiter_registry_t *registry)
{
    apr_time_t began = apr_time_now();

    if (swap_sets(registry)) {
        query_and_deliver(registry);
        pause_after(began);
    }
}
