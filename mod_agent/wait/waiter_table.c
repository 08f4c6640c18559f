/* SPDX-License-Identifier: Apache-2.0 */
/* Waiters by key, by epoll serial and by heartbeat, and their limits. */
#include "waiter_table.h"

#include <apr_strings.h>

/* The waiters of an account. */
typedef struct account_waiters_t {
    int waiting;
    int streams;
} account_waiters_t;

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
    table->accounts = apr_hash_make(tables);
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

static bool is_account_full(const agent_waiter_table_t *table,
                            const agent_waiter_params_t *params)
{
    const agent_waiter_account_t *account = &params->account;
    apr_int64_t most = params->is_stream ? account->streams : account->waiting;
    const account_waiters_t *held = account->id != NULL
        ? apr_hash_get(table->accounts, account->id, APR_HASH_KEY_STRING)
        : NULL;
    int count = 0;

    if (held != NULL) {
        count = params->is_stream ? held->streams : held->waiting;
    }
    return account->id != NULL && most >= 0 && count >= most;
}

/* Entries of accounts are never removed: few accounts have limits. */
static void count_account(agent_waiter_table_t *table,
                          const agent_waiter_params_t *params, int change)
{
    const char *id = params->account.id;
    account_waiters_t *held;

    if (id == NULL) {
        return;
    }
    held = apr_hash_get(table->accounts, id, APR_HASH_KEY_STRING);
    if (held == NULL) {
        apr_pool_t *pool = apr_hash_pool_get(table->accounts);

        held = apr_pcalloc(pool, sizeof(*held));
        apr_hash_set(table->accounts, apr_pstrdup(pool, id),
                     APR_HASH_KEY_STRING, held);
    }
    *(params->is_stream ? &held->streams : &held->waiting) += change;
}

bool agent_waiter_table_accepts_locked(agent_error_id_t *refusal,
                                       const agent_waiter_table_t *table,
                                       const agent_waiter_params_t *params)
{
    if (is_account_full(table, params)) {
        *refusal = AGENT_E_LIMIT;
        return false;
    }
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
    count_account(table, &waiter->params, 1);
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
    count_account(table, &waiter->params, -1);
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
