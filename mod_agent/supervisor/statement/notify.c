/* SPDX-License-Identifier: Apache-2.0 */
/* News for waiting requests; see notify.h. */
#include "notify.h"

#include <string.h>

#include <apr_strings.h>

#include "../instance.h"

#define INTERVAL apr_time_from_msec(2)

void agent_notify_init(agent_supervisor_t *sv)
{
    agent_notify_t *notify = &sv->notify;

    apr_pool_create(&notify->pool, sv->pool);
    notify->ids = apr_hash_make(notify->pool);
    apr_pool_create(&notify->sent_pool, sv->pool);
    notify->due_at = AGENT_NEVER;
}

bool agent_notify_is_empty(const agent_supervisor_t *sv)
{
    return apr_hash_count(sv->notify.ids) == 0;
}

static void add_id(agent_supervisor_t *sv, const char *id, apr_time_t due)
{
    agent_notify_t *notify = &sv->notify;

    if (apr_hash_get(notify->ids, id, APR_HASH_KEY_STRING) == NULL) {
        const char *copy = apr_pstrdup(notify->pool, id);

        apr_hash_set(notify->ids, copy, APR_HASH_KEY_STRING, copy);
    }
    notify->due_at = due < notify->due_at ? due : notify->due_at;
}

void agent_notify_add(agent_supervisor_t *sv, const char *run_id,
                      const char *thread_id, bool ended)
{
    apr_time_t due = ended ? sv->now : sv->notify.sent_at + INTERVAL;

    add_id(sv, run_id, due);
    if (thread_id != NULL) {
        add_id(sv, thread_id, due);
    }
    if (ended) {
        agent_webhook_hint(sv);
    }
}

void agent_notify_relay(agent_supervisor_t *sv, const char *ids)
{
    while (*ids != '\0') {
        size_t length = strcspn(ids, " ");
        char text[AGENT_UUID_SIZE];
        char id[AGENT_UUID_SIZE];

        if (length == sizeof(text) - 1) {
            apr_cpystrn(text, ids, sizeof(text));
            if (agent_uuid_parse(id, text)) {
                add_id(sv, id, sv->now);
            }
        }
        ids += length;
        ids += strspn(ids, " ");
    }
}

static apr_time_t due_notify(agent_supervisor_t *sv)
{
    return agent_notify_is_empty(sv) ? AGENT_NEVER : sv->notify.due_at;
}

static apr_status_t send_notify(agent_supervisor_t *sv,
                                agent_database_t *database, agent_error_t **err)
{
    agent_notify_t *notify = &sv->notify;
    apr_pool_t *pool = database->scratch;
    apr_pool_t *sent = notify->pool;
    apr_size_t count = 0;
    const char *params[1];
    const char **ids = apr_palloc(pool,
                                  apr_hash_count(notify->ids) * sizeof(*ids));

    for (apr_hash_index_t *at = apr_hash_first(pool, notify->ids); at != NULL;
         at = apr_hash_next(at)) {
        ids[count++] = apr_hash_this_key(at);
    }
    params[0] = agent_db_array(ids, count, pool);
    /* What comes up meanwhile is collected in the other pool. */
    notify->sent_ids = notify->ids;
    notify->pool = notify->sent_pool;
    notify->sent_pool = sent;
    apr_pool_clear(notify->pool);
    notify->ids = apr_hash_make(notify->pool);
    notify->due_at = AGENT_NEVER;
    notify->sent_at = sv->now;
    return agent_db_send(database->db, AGENT_SQL_NOTIFY_RUNS, params, err,
                         pool);
}

static void receive_notify(agent_supervisor_t *sv,
                           const agent_db_result_t *result)
{
    /* The ids stay in sent_pool until the next statement. */
    sv->notify.sent_ids = NULL;
}

/* A hint may be given twice, but must not be lost without need. */
static void fail_notify(agent_supervisor_t *sv, agent_failure_t failure)
{
    agent_notify_t *notify = &sv->notify;
    apr_hash_index_t *at = apr_hash_first(sv->database.scratch,
                                          notify->sent_ids);

    if (failure == AGENT_FAILURE_DATA || failure == AGENT_FAILURE_OTHER) {
        return;
    }
    for (; at != NULL; at = apr_hash_next(at)) {
        add_id(sv, apr_hash_this_key(at), AGENT_NEVER);
    }
    notify->due_at = agent_database_retry_at(sv, failure);
}

const agent_operation_t agent_notify_operation = {
    "notify_runs", due_notify, send_notify, receive_notify, fail_notify};
