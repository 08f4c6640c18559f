/* SPDX-License-Identifier: Apache-2.0 */
/* Giving runs back; see release.h. */
#include "release.h"

#include <string.h>

#include <apr_strings.h>

#include "state.h"

/* Runs of one statement. */
#define MAX_RELEASES 200

/* Columns of the statements that release runs. */
enum { COL_RUN, COL_THREAD, COL_OUTCOME };

void agent_release_init(agent_supervisor_t *sv)
{
    APR_RING_INIT(&sv->releases.waiting, agent_release_t, link);
    APR_RING_INIT(&sv->releases.unused, agent_release_t, link);
}

bool agent_release_is_empty(const agent_supervisor_t *sv)
{
    return APR_RING_EMPTY(&sv->releases.waiting, agent_release_t, link);
}

void agent_release_add(agent_supervisor_t *sv, const agent_lease_t *lease,
                       bool counted, const char *reason)
{
    agent_release_queue_t *queue = &sv->releases;
    agent_release_t *release;

    if (APR_RING_EMPTY(&queue->unused, agent_release_t, link)) {
        release = apr_palloc(sv->pool, sizeof(*release));
    }
    else {
        release = APR_RING_FIRST(&queue->unused);
        APR_RING_REMOVE(release, link);
    }
    release->key = lease->key;
    memcpy(release->account_id, lease->account_id, AGENT_UUID_SIZE);
    release->counted = counted;
    release->reason = reason;
    release->after_batch = agent_batch_hurry(sv);
    release->sent = false;
    APR_RING_INSERT_TAIL(&queue->waiting, release, agent_release_t, link);
}

void agent_release_clear(agent_supervisor_t *sv)
{
    APR_RING_CONCAT(&sv->releases.unused, &sv->releases.waiting,
                    agent_release_t, link);
}

static apr_time_t due_release(agent_supervisor_t *sv)
{
    agent_release_t *first = APR_RING_FIRST(&sv->releases.waiting);

    if (!agent_worker_is_live(sv) || agent_release_is_empty(sv)
        || first->after_batch >= agent_batch_oldest(sv)) {
        return AGENT_NEVER;
    }
    return sv->releases.retry_at;
}

/* Whether a release can go with the first one, in the same statement. */
static bool goes_along(const agent_supervisor_t *sv,
                       const agent_release_t *first,
                       const agent_release_t *release)
{
    return release->counted == first->counted
        && strcmp(release->reason, first->reason) == 0
        && release->after_batch < agent_batch_oldest(sv);
}

static apr_status_t send_release(agent_supervisor_t *sv,
                                 agent_database_t *database,
                                 agent_error_t **err)
{
    agent_release_queue_t *queue = &sv->releases;
    agent_release_t *first = APR_RING_FIRST(&queue->waiting);
    apr_pool_t *pool = database->scratch;
    const char *params[4];
    agent_buffer_t items;
    agent_release_t *release;
    int count = 0;

    agent_buffer_init(&items, pool);
    AGENT_RING_EACH(release, &queue->waiting, agent_release_t, link)
    {
        release->sent = count < MAX_RELEASES && goes_along(sv, first, release);
        if (release->sent) {
            agent_buffer_print(&items,
                               "%s{\"a\":\"%s\",\"r\":\"%.36s\",\"e\":%d}",
                               count++ > 0 ? "," : "[", release->account_id,
                               release->key.run_id, (int)release->key.epoch);
        }
    }
    agent_buffer_append(&items, "]", 2);
    params[0] = sv->worker.id;
    params[1] = agent_buffer_text(&items);
    params[2] = first->counted ? "true" : "false";
    params[3] = first->reason;
    return agent_db_send(database->db, AGENT_SQL_RELEASE_RUNS, params, err,
                         pool);
}

void agent_release_tell(agent_supervisor_t *sv,
                        const agent_db_result_t *released)
{
    for (int row = 0; row < agent_db_rows(released); row++) {
        if (strcmp(agent_db_value(released, row, COL_OUTCOME), "requeued")
            != 0) {
            agent_notify_add(sv, agent_db_value(released, row, COL_RUN),
                             agent_db_value(released, row, COL_THREAD), true);
        }
    }
}

static void receive_release(agent_supervisor_t *sv,
                            const agent_db_result_t *result)
{
    agent_release_queue_t *queue = &sv->releases;
    agent_release_t *release;
    agent_release_t *next;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_report_write(sv, AGENT_LOG_INFO, "AGT0346", 0,
                           "run %s given back: %s",
                           agent_db_value(result, row, COL_RUN),
                           agent_db_value(result, row, COL_OUTCOME));
    }
    agent_release_tell(sv, result);
    AGENT_RING_EACH_SAFE(release, next, &queue->waiting, agent_release_t, link)
    {
        agent_lease_t *lease;

        if (!release->sent) {
            continue;
        }
        lease = agent_lease_find(sv, &release->key);
        if (lease != NULL) {
            agent_lease_set_state(sv, lease, AGENT_LEASE_GONE);
        }
        APR_RING_REMOVE(release, link);
        APR_RING_INSERT_TAIL(&queue->unused, release, agent_release_t, link);
    }
    agent_claim_wake(sv);
}

static void fail_release(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->releases.retry_at = agent_database_retry_at(sv, failure);
}

const agent_operation_t agent_release_operation = {
    "release_runs", due_release, send_release, receive_release, fail_release};
