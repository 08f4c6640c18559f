/* SPDX-License-Identifier: Apache-2.0 */
/* Waiters by key, by epoll serial and by heartbeat, and their limits. */
#include "table.h"

void agent_waiter_table_init(agent_waiter_table_t *table,
                             const agent_waiter_limits_t *limits,
                             apr_pool_t *tables)
{
    table->by_key = apr_hash_make(tables);
    table->by_serial = apr_hash_make(tables);
    APR_RING_INIT(&table->by_heartbeat, agent_waiter_t, link);
    APR_RING_INIT(&table->by_timeout, agent_waiter_t, timeout);
    agent_slot_shares_init(&table->parked, limits->parked, limits->deployments,
                           tables);
    agent_slot_shares_init(&table->blocked, limits->blocked,
                           limits->deployments, tables);
    table->parked_per_address = limits->parked_per_address;
    table->blocked_per_address = limits->blocked_per_address;
    agent_client_addresses_init(&table->parked_addresses, tables);
    agent_client_addresses_init(&table->blocked_addresses, tables);
}

static bool is_address_full(const agent_waiter_table_t *table, bool parked,
                            apr_uint64_t address)
{
    int most = parked ? table->parked_per_address : table->blocked_per_address;
    const agent_client_addresses_t *addresses = parked
        ? &table->parked_addresses
        : &table->blocked_addresses;

    return most != 0
        && agent_client_addresses_count(addresses, address) >= most;
}

bool agent_waiter_table_accepts_locked(agent_error_id_t *refusal,
                                       const agent_waiter_table_t *table,
                                       const agent_waiter_params_t *params)
{
    if (!agent_slot_shares_accept(params->parked ? &table->parked
                                                 : &table->blocked,
                                  params->deployment_id)) {
        *refusal = AGENT_E_OVERLOADED;
        return false;
    }
    if (is_address_full(table, params->parked, params->address)) {
        *refusal = AGENT_E_ADDRESS_FULL;
        return false;
    }
    return true;
}

/* The hash borrows its key from the first waiter of the chain. */
static void set_first(agent_waiter_table_t *table, agent_waiter_t *first)
{
    apr_hash_set(table->by_key, first->params.key, APR_HASH_KEY_STRING, NULL);
    apr_hash_set(table->by_key, first->params.key, APR_HASH_KEY_STRING, first);
}

static void count_in(agent_waiter_table_t *table, const agent_waiter_t *waiter)
{
    table->count++;
    if (waiter->params.parked) {
        agent_slot_shares_take(&table->parked, waiter->params.deployment_id);
        agent_client_addresses_add(&table->parked_addresses,
                                   waiter->params.address);
    }
    else {
        agent_slot_shares_take(&table->blocked, waiter->params.deployment_id);
        agent_client_addresses_add(&table->blocked_addresses,
                                   waiter->params.address);
    }
}

static void count_out(agent_waiter_table_t *table, const agent_waiter_t *waiter)
{
    table->count--;
    if (waiter->params.parked) {
        agent_slot_shares_return(&table->parked, waiter->params.deployment_id);
        agent_client_addresses_remove(&table->parked_addresses,
                                      waiter->params.address);
    }
    else {
        agent_slot_shares_return(&table->blocked, waiter->params.deployment_id);
        agent_client_addresses_remove(&table->blocked_addresses,
                                      waiter->params.address);
    }
}

/* The timeouts of a server are the same: the last one is the latest, unless the
 * clock was set back. */
static void insert_timeout(agent_waiter_table_t *table, agent_waiter_t *waiter)
{
    agent_waiter_t *before = APR_RING_LAST(&table->by_timeout);

    while (before
               != APR_RING_SENTINEL(&table->by_timeout, agent_waiter_t, timeout)
           && before->timeout_at > waiter->timeout_at) {
        before = APR_RING_PREV(before, timeout);
    }
    APR_RING_INSERT_AFTER(before, waiter, timeout);
}

void agent_waiter_table_drop_timeout_locked(agent_waiter_t *waiter)
{
    if (waiter->timeout_at != 0) {
        APR_RING_REMOVE(waiter, timeout);
        waiter->timeout_at = 0;
    }
}

void agent_waiter_table_add_locked(agent_waiter_table_t *table,
                                   agent_waiter_t *waiter)
{
    waiter->serial = ++table->last_serial;
    waiter->next = agent_waiter_table_find_locked(table, waiter->params.key,
                                                  APR_HASH_KEY_STRING);
    set_first(table, waiter);
    APR_RING_INSERT_TAIL(&table->by_heartbeat, waiter, agent_waiter_t, link);
    if (waiter->timeout_at != 0) {
        insert_timeout(table, waiter);
    }
    count_in(table, waiter);
    if (waiter->params.client_fd >= 0) {
        apr_hash_set(table->by_serial, &waiter->serial, sizeof(waiter->serial),
                     waiter);
    }
}

static void unchain(agent_waiter_table_t *table, const agent_waiter_t *waiter)
{
    agent_waiter_t *first = agent_waiter_table_find_locked(
        table, waiter->params.key, APR_HASH_KEY_STRING);
    agent_waiter_t **link = &first;

    while (*link != waiter) {
        link = &(*link)->next;
    }
    *link = waiter->next;
    apr_hash_set(table->by_key, waiter->params.key, APR_HASH_KEY_STRING, NULL);
    if (first != NULL) {
        set_first(table, first);
    }
}

void agent_waiter_table_remove_locked(agent_waiter_table_t *table,
                                      agent_waiter_t *waiter)
{
    unchain(table, waiter);
    APR_RING_REMOVE(waiter, link);
    agent_waiter_table_drop_timeout_locked(waiter);
    count_out(table, waiter);
    if (waiter->params.client_fd >= 0) {
        apr_hash_set(table->by_serial, &waiter->serial, sizeof(waiter->serial),
                     NULL);
    }
}

agent_waiter_t *agent_waiter_table_find_locked(
    const agent_waiter_table_t *table, const char *key, apr_ssize_t length)
{
    return apr_hash_get(table->by_key, key, length);
}

agent_waiter_t *agent_waiter_table_find_serial_locked(
    const agent_waiter_table_t *table, apr_uint64_t serial)
{
    return apr_hash_get(table->by_serial, &serial, sizeof(serial));
}
