/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of each deployment; see backlog.h. */
#include "backlog.h"

#include <string.h>

#include <apr_strings.h>

#include "../../core/uuid.h"
#include "../base/order.h"
#include "batch_size.h"

/* The bytes of a deployment, or of an account: at least one. */
struct agent_backlog_t {
    APR_RING_ENTRY(agent_backlog_t) link;
    char id[AGENT_UUID_SIZE];
    /* Of a deployment, that of its account; of an account: NULL. */
    agent_backlog_t *account;
    apr_size_t sums[AGENT_BACKLOG_KINDS];
    /* The iteration in which its next free bytes were reserved. */
    apr_uint64_t reserved_in;
    /* Among the slow ones, once it was slow: until when, and the cost that
     * takes AGENT_BATCH_SIZE_TARGET. */
    APR_RING_ENTRY(agent_backlog_t) slow_link;
    agent_batch_size_t batch_size;
};

static const agent_backlog_t nothing;

void agent_backlog_init(agent_backlog_table_t *table,
                        const agent_context_t *context,
                        const agent_account_map_t *accounts)
{
    memset(table, 0, sizeof(*table));
    table->context = context;
    table->accounts = accounts;
    table->by_deployment = apr_hash_make(context->pool);
    table->by_account = apr_hash_make(context->pool);
    table->iteration = 1;
    APR_RING_INIT(&table->unused, agent_backlog_t, link);
    APR_RING_INIT(&table->slow, agent_backlog_t, slow_link);
}

static agent_backlog_t *find(const agent_backlog_table_t *table,
                             const char *deployment_id)
{
    return apr_hash_get(table->by_deployment, deployment_id,
                        APR_HASH_KEY_STRING);
}

/* For a deployment without bytes too. */
static const agent_backlog_t *look_up(const agent_backlog_table_t *table,
                                      const char *deployment_id)
{
    const agent_backlog_t *backlog = find(table, deployment_id);

    return backlog != NULL ? backlog : &nothing;
}

static const agent_backlog_t *look_up_account(
    const agent_backlog_table_t *table, const char *deployment_id)
{
    const agent_backlog_t *backlog = find(table, deployment_id);

    backlog = backlog != NULL
        ? backlog->account
        : apr_hash_get(table->by_account,
                       agent_account_map_find(table->accounts, deployment_id),
                       APR_HASH_KEY_STRING);
    return backlog != NULL ? backlog : &nothing;
}

/* Finds the backlog of an id in one of the hashes, or makes it. */
static agent_backlog_t *find_or_make(agent_backlog_table_t *table,
                                     apr_hash_t *hash, const char *id)
{
    agent_backlog_ring_t *unused = &table->unused;
    agent_backlog_t *backlog = apr_hash_get(hash, id, APR_HASH_KEY_STRING);

    if (backlog != NULL) {
        return backlog;
    }
    backlog = APR_RING_FIRST(unused);
    if (APR_RING_EMPTY(unused, agent_backlog_t, link)) {
        backlog = apr_palloc(table->context->pool, sizeof(*backlog));
    }
    else {
        APR_RING_REMOVE(backlog, link);
    }
    memset(backlog, 0, sizeof(*backlog));
    apr_cpystrn(backlog->id, id, sizeof(backlog->id));
    apr_hash_set(hash, backlog->id, APR_HASH_KEY_STRING, backlog);
    return backlog;
}

static void free_if_empty(agent_backlog_table_t *table, apr_hash_t *hash,
                          agent_backlog_t *backlog)
{
    for (int i = 0; i < AGENT_BACKLOG_KINDS; i++) {
        if (backlog->sums[i] > 0) {
            return;
        }
    }
    if (backlog->batch_size.limit > 0) {
        APR_RING_REMOVE(backlog, slow_link);
    }
    apr_hash_set(hash, backlog->id, APR_HASH_KEY_STRING, NULL);
    APR_RING_INSERT_TAIL(&table->unused, backlog, agent_backlog_t, link);
}

void agent_backlog_add(agent_backlog_table_t *table, const char *deployment_id,
                       agent_backlog_kind_t kind, apr_size_t bytes)
{
    agent_backlog_t *backlog;

    if (bytes == 0) {
        return;
    }
    backlog = find_or_make(table, table->by_deployment, deployment_id);
    if (backlog->account == NULL) {
        backlog->account = find_or_make(
            table, table->by_account,
            agent_account_map_find(table->accounts, deployment_id));
    }
    backlog->sums[kind] += bytes;
    backlog->account->sums[kind] += bytes;
    table->sums[kind] += bytes;
}

void agent_backlog_remove(agent_backlog_table_t *table,
                          const char *deployment_id, agent_backlog_kind_t kind,
                          apr_size_t bytes)
{
    agent_backlog_t *backlog = find(table, deployment_id);

    if (bytes == 0 || backlog == NULL) {
        return;
    }
    backlog->sums[kind] -= bytes;
    backlog->account->sums[kind] -= bytes;
    table->sums[kind] -= bytes;
    free_if_empty(table, table->by_account, backlog->account);
    free_if_empty(table, table->by_deployment, backlog);
}

/* ---- shares ---- */

/* In dedicated batches, with credit for these. */
static apr_size_t bytes_of_dedicated(const agent_backlog_table_t *table)
{
    return table->sums[AGENT_BACKLOG_DEDICATED]
        + table->sums[AGENT_BACKLOG_CREDIT];
}

/* The room that others leave. */
static apr_size_t rest_of(apr_size_t room, apr_size_t others)
{
    return room - AGENT_MIN(others, room);
}

static bool may_add(apr_size_t own, apr_size_t bytes, apr_size_t most)
{
    return own == 0 || own + bytes <= most;
}

/* Whether an account that has own of all bytes may add some. */
static bool account_may_add(apr_size_t own, apr_size_t all,
                            agent_backlog_kind_t kind, apr_size_t bytes)
{
    bool is_shared = kind == AGENT_BACKLOG_SHARED;
    apr_size_t rest = rest_of(is_shared ? AGENT_BATCH_MAX_SHARED
                                        : AGENT_BATCH_MAX_DEDICATED,
                              all - own);
    apr_size_t reserve = !is_shared && bytes <= AGENT_CREDIT_MEDIUM
        ? AGENT_BATCH_MEDIUM_ROOM
        : 0;

    return may_add(own, bytes, rest / 4 * 3 + reserve);
}

/* Its bytes in batches of one kind, with credit for these. */
static apr_size_t bytes_in(const agent_backlog_t *backlog,
                           agent_backlog_kind_t kind)
{
    return kind == AGENT_BACKLOG_SHARED ? backlog->sums[AGENT_BACKLOG_SHARED]
                                        : backlog->sums[AGENT_BACKLOG_DEDICATED]
            + backlog->sums[AGENT_BACKLOG_CREDIT];
}

bool agent_backlog_has_share(const agent_backlog_table_t *table,
                             const char *deployment_id,
                             agent_backlog_kind_t kind, apr_size_t run_bytes,
                             apr_size_t bytes)
{
    bool is_shared = kind == AGENT_BACKLOG_SHARED;
    apr_size_t room = is_shared ? AGENT_BATCH_MAX_SHARED
                                : AGENT_BATCH_MAX_DEDICATED;
    apr_size_t all = is_shared ? table->sums[AGENT_BACKLOG_SHARED]
                               : bytes_of_dedicated(table);
    apr_size_t own = bytes_in(look_up(table, deployment_id), kind);
    apr_size_t most = rest_of(room, all - own) / 2;
    apr_size_t other_runs = own - AGENT_MIN(run_bytes, own);

    return account_may_add(
               bytes_in(look_up_account(table, deployment_id), kind), all, kind,
               bytes)
        && may_add(own, bytes, most)
        && may_add(run_bytes, bytes, rest_of(most, other_runs) / 2);
}

bool agent_backlog_may_move(const agent_backlog_table_t *table,
                            const char *deployment_id, apr_size_t bytes)
{
    return bytes_of_dedicated(table) + bytes <= AGENT_BATCH_MAX_DEDICATED
        && agent_backlog_has_share(table, deployment_id,
                                   AGENT_BACKLOG_DEDICATED, 0, bytes);
}

bool agent_backlog_has_share_without_credit(const agent_backlog_table_t *table,
                                            const char *deployment_id,
                                            apr_size_t bytes)
{
    const apr_size_t *of = look_up(table, deployment_id)->sums;
    const apr_size_t *account = look_up_account(table, deployment_id)->sums;
    apr_size_t all = bytes_of_dedicated(table);
    apr_size_t others = all - of[AGENT_BACKLOG_DEDICATED]
        - of[AGENT_BACKLOG_CREDIT];

    return account_may_add(account[AGENT_BACKLOG_DEDICATED],
                           all - account[AGENT_BACKLOG_CREDIT],
                           AGENT_BACKLOG_DEDICATED, bytes)
        && may_add(of[AGENT_BACKLOG_DEDICATED], bytes,
                   rest_of(AGENT_BATCH_MAX_DEDICATED, others) / 2);
}

static bool is_half_free(const agent_backlog_table_t *table,
                         const agent_backlog_t *backlog, apr_size_t bytes)
{
    apr_size_t own = backlog->sums[AGENT_BACKLOG_DEDICATED];
    apr_size_t most = rest_of(AGENT_BATCH_MAX_DEDICATED,
                              table->sums[AGENT_BACKLOG_DEDICATED] - own)
        / 2;

    return own + bytes == 0 || own + bytes < most / 2;
}

bool agent_backlog_is_half_free(const agent_backlog_table_t *table,
                                const char *deployment_id, apr_size_t bytes)
{
    return is_half_free(table, look_up(table, deployment_id), bytes);
}

/* ---- slow deployments ---- */

void agent_backlog_set_slow(agent_backlog_table_t *table,
                            const char *deployment_id, apr_size_t cost)
{
    agent_backlog_t *backlog = find(table, deployment_id);

    if (backlog == NULL) {
        return;
    }
    if (backlog->batch_size.limit == 0) {
        APR_RING_INSERT_TAIL(&table->slow, backlog, agent_backlog_t, slow_link);
    }
    backlog->batch_size.limit = AGENT_MAX(cost, (apr_size_t)1);
    agent_batch_size_dedicate(&backlog->batch_size, table->context->now);
}

/* While its lines could not leave, the mark stays: they would fill the shared
 * batches before the next measurement. */
static bool is_slow(const agent_backlog_table_t *table,
                    const agent_backlog_t *backlog)
{
    return backlog->batch_size.limit > 0
        && (agent_batch_size_is_dedicated(&backlog->batch_size,
                                          table->context->now)
            || !is_half_free(table, backlog, 0));
}

bool agent_backlog_is_slow(const agent_backlog_table_t *table,
                           const char *deployment_id)
{
    return is_slow(table, look_up(table, deployment_id));
}

bool agent_backlog_is_any_slow(const agent_backlog_table_t *table)
{
    const agent_backlog_t *backlog;
    double part = 0;

    AGENT_RING_EACH(backlog, &table->slow, agent_backlog_t, slow_link)
    {
        if (is_slow(table, backlog)) {
            part += (double)backlog->sums[AGENT_BACKLOG_COST]
                / (double)backlog->batch_size.limit;
        }
        if (part > 1) {
            return true;
        }
    }
    return false;
}

/* ---- reservations ---- */

void agent_backlog_reserve(agent_backlog_table_t *table,
                           const char *deployment_id)
{
    agent_backlog_t *backlog = find(table, deployment_id);

    if (backlog != NULL) {
        backlog->reserved_in = table->iteration;
    }
}

bool agent_backlog_is_reserved(const agent_backlog_table_t *table,
                               const char *deployment_id)
{
    return look_up(table, deployment_id)->reserved_in == table->iteration;
}

void agent_backlog_begin_iteration(agent_backlog_table_t *table)
{
    table->iteration++;
}
