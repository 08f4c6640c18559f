/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of notifications, and notify_runs; see notify.h. */
#include "notify.h"

#include <apr_strings.h>

#include "../../core/id_list.h"
#include "../../core/uuid.h"
#include "../base/order.h"

#define INTERVAL apr_time_from_msec(2)

void agent_notify_init(agent_notify_t *notify, const agent_context_t *context)
{
    notify->context = context;
    apr_pool_create(&notify->pool, context->pool);
    notify->ids = apr_hash_make(notify->pool);
    apr_pool_create(&notify->sent_pool, context->pool);
    notify->due_at = AGENT_CLOCK_NEVER;
}

bool agent_notify_is_empty(const agent_notify_t *notify)
{
    return apr_hash_count(notify->ids) == 0;
}

static void add_id(agent_notify_t *notify, const char *id, bool may_have_ended,
                   apr_time_t due)
{
    agent_notify_id_t *entry = apr_hash_get(notify->ids, id,
                                            APR_HASH_KEY_STRING);

    if (entry == NULL) {
        entry = apr_pcalloc(notify->pool, sizeof(*entry));
        entry->id = apr_pstrdup(notify->pool, id);
        apr_hash_set(notify->ids, entry->id, APR_HASH_KEY_STRING, entry);
    }
    entry->may_have_ended |= may_have_ended;
    notify->due_at = AGENT_MIN(due, notify->due_at);
}

void agent_notify_add(agent_notify_t *notify, const char *run_id,
                      const char *thread_id, bool ended)
{
    apr_time_t due = ended ? notify->context->now : notify->sent_at + INTERVAL;

    add_id(notify, run_id, ended, due);
    if (thread_id != NULL) {
        add_id(notify, thread_id, false, due);
    }
}

void agent_notify_relay(agent_notify_t *notify, const char *ids)
{
    const char *found;
    apr_size_t length;

    while (agent_id_list_next(&ids, &found, &length)) {
        char text[AGENT_UUID_SIZE];
        char id[AGENT_UUID_SIZE];

        if (length == sizeof(text) - 1) {
            apr_cpystrn(text, found, sizeof(text));
            if (agent_uuid_parse(id, text)) {
                add_id(notify, id, true, notify->context->now);
            }
        }
    }
}

static apr_time_t due_notify(void *part)
{
    const agent_notify_t *notify = part;

    return agent_notify_is_empty(notify) ? AGENT_CLOCK_NEVER : notify->due_at;
}

static const agent_statement_t notify_runs = {
    .name = "agent_notify_runs",
    .params = 1,
    .sql = "select agent.notify_runs($1)"};

static apr_status_t send_notify(void *part, agent_database_t *database,
                                agent_error_t **err)
{
    agent_notify_t *notify = part;
    apr_pool_t *pool = database->scratch;
    apr_pool_t *sent = notify->pool;
    apr_size_t count = 0;
    const char *params[1];
    const char **ids = apr_palloc(pool,
                                  apr_hash_count(notify->ids) * sizeof(*ids));

    /* Bounded: 38 bytes for each. */
    for (apr_hash_index_t *at = apr_hash_first(pool, notify->ids); at != NULL;
         at = apr_hash_next(at)) {
        const agent_notify_id_t *entry = apr_hash_this_val(at);

        ids[count++] = entry->may_have_ended
            ? apr_pstrcat(pool, entry->id, "!", NULL)
            : entry->id;
    }
    params[0] = agent_db_array(ids, count, pool);
    /* Further ids are collected in the other pool. */
    notify->sent_ids = notify->ids;
    notify->pool = notify->sent_pool;
    notify->sent_pool = sent;
    apr_pool_clear(notify->pool);
    notify->ids = apr_hash_make(notify->pool);
    notify->due_at = AGENT_CLOCK_NEVER;
    notify->sent_at = notify->context->now;
    return agent_db_send(database->db, &notify_runs, params, err, pool);
}

static void receive_notify(void *part, const agent_db_result_t *result)
{
    agent_notify_t *notify = part;

    /* The ids stay in sent_pool until the next statement. */
    notify->sent_ids = NULL;
}

/* A notification may be sent twice, but should not be lost. */
static void fail_notify(void *part, agent_failure_t failure)
{
    agent_notify_t *notify = part;
    apr_hash_index_t *at = apr_hash_first(notify->sent_pool, notify->sent_ids);

    if (failure == AGENT_FAILURE_DATA || failure == AGENT_FAILURE_OTHER) {
        return;
    }
    for (; at != NULL; at = apr_hash_next(at)) {
        const agent_notify_id_t *entry = apr_hash_this_val(at);

        add_id(notify, entry->id, entry->may_have_ended, AGENT_CLOCK_NEVER);
    }
    notify->due_at = agent_database_retry_at(notify->context, failure);
}

const agent_operation_t agent_notify_operation = {
    "notify_runs", due_notify, send_notify, receive_notify, fail_notify};
