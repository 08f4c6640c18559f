/* SPDX-License-Identifier: Apache-2.0 */
/* Deletions of threads, runs and assistants; see deletion.h. */
#include "deletion.h"

#include <apr_strings.h>

#include "../core/wake.h"
#include "../http/body.h"
#include "../http/problem.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/assistant.h"
#include "../model/run.h"
#include "../model/thread.h"
#include "../wait/park.h"
#include "invalid_key.h"

typedef struct deletion_t {
    agent_call_t *call;
    /* Deletes a piece. APR_EAGAIN: something is left. */
    apr_status_t (*delete_piece)(struct deletion_t *deletion,
                                 agent_db_pool_t *db, apr_pool_t *scratch);
    /* Threads: a piece of the current one was deleted. */
    bool begun;
    bool with_threads;
    /* Several threads: index, that of the next one; pruned, the number of
     * those deleted. */
    const apr_array_header_t *thread_ids;
    int index;
    int pruned;
    /* Deletes all but the last state of each thread; the position in the
     * current one, in a pool of its own. */
    bool keeps_latest;
    const char *position;
    apr_pool_t *position_pool;
    /* Assistants: as in agent_assistant_delete(), in the call's pool. */
    const char *before;
    /* Runs: as in agent_run_delete(), empty at first. */
    char cursor[AGENT_RUN_DELETE_CURSOR_SIZE];
} deletion_t;

static apr_status_t delete_thread(deletion_t *deletion, agent_db_pool_t *db,
                                  apr_pool_t *scratch)
{
    agent_call_t *call = deletion->call;
    const char *changed;
    bool more = deletion->begun;
    apr_status_t rv = agent_thread_delete(&changed, &more, db, &call->ref,
                                          &call->err, scratch);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    /* The supervisor stops the runner of a run that was deleted. */
    agent_wake_cancel(call->child->wake_fd, call->ref.deployment_id, changed);
    deletion->begun = true;
    return more ? APR_EAGAIN : APR_SUCCESS;
}

static apr_status_t delete_run(deletion_t *deletion, agent_db_pool_t *db,
                               apr_pool_t *scratch)
{
    agent_call_t *call = deletion->call;
    const char *cursor = deletion->cursor[0] != '\0' ? deletion->cursor : NULL;
    const char *changed;
    apr_status_t rv = agent_run_delete(&cursor, &changed, db, &call->ref,
                                       &call->err, scratch);

    if (rv == APR_SUCCESS) {
        agent_wake_changed(call->child->wake_fd, call->ref.deployment_id,
                           changed);
    }
    else if (APR_STATUS_IS_EAGAIN(rv)) {
        apr_cpystrn(deletion->cursor, cursor, sizeof(deletion->cursor));
    }
    return rv;
}

static apr_status_t delete_assistant(deletion_t *deletion, agent_db_pool_t *db,
                                     apr_pool_t *scratch)
{
    agent_call_t *call = deletion->call;
    const char *before = deletion->before;
    const char *changed;
    apr_status_t rv = agent_assistant_delete(
        &before, &changed, db, &call->ref, call->assistant_id,
        deletion->with_threads, &call->err, scratch);

    if (changed != NULL) {
        agent_wake_cancel(call->child->wake_fd, call->ref.deployment_id,
                          changed);
    }
    if (deletion->before == NULL) {
        deletion->before = apr_pstrdup(call->pool, before);
    }
    return rv;
}

/* Saves the position in the current thread. A thread may have thousands of
 * pieces, so each position has a pool, which the next one destroys. */
static void save_position(deletion_t *deletion, const char *position)
{
    apr_pool_t *pool = NULL;

    if (position != NULL) {
        apr_pool_create(&pool, deletion->call->pool);
        position = apr_pstrdup(pool, position);
    }
    if (deletion->position_pool != NULL) {
        apr_pool_destroy(deletion->position_pool);
    }
    deletion->position_pool = pool;
    deletion->position = position;
}

static apr_status_t keep_latest(deletion_t *deletion, agent_db_pool_t *db,
                                apr_pool_t *scratch)
{
    agent_call_t *call = deletion->call;
    const char *position = deletion->position;
    apr_status_t rv = agent_thread_prune(&position, db, &call->ref, &call->err,
                                         scratch);

    if (rv == APR_SUCCESS) {
        save_position(deletion, position);
        return position != NULL ? APR_EAGAIN : APR_SUCCESS;
    }
    if (call->err->id != AGENT_E_POOL_EXHAUSTED) {
        save_position(deletion, NULL);
    }
    return rv;
}

/* Whether the error concerns one thread only, which is then skipped. */
static bool is_of_thread(const agent_error_t *err)
{
    return err->id == AGENT_E_THREAD_NOT_FOUND
        || err->id == AGENT_E_THREAD_BUSY;
}

static apr_status_t prune_threads(deletion_t *deletion, agent_db_pool_t *db,
                                  apr_pool_t *scratch)
{
    agent_call_t *call = deletion->call;
    apr_status_t rv;

    call->ref.thread_id = APR_ARRAY_IDX(deletion->thread_ids, deletion->index,
                                        const char *);
    rv = deletion->keeps_latest ? keep_latest(deletion, db, scratch)
                                : delete_thread(deletion, db, scratch);
    if (APR_STATUS_IS_EAGAIN(rv)
        || (rv != APR_SUCCESS && !is_of_thread(call->err))) {
        return rv;
    }
    deletion->pruned += rv == APR_SUCCESS;
    deletion->index++;
    deletion->begun = false;
    return deletion->index < deletion->thread_ids->nelts ? APR_EAGAIN
                                                         : APR_SUCCESS;
}

static int respond(const deletion_t *deletion, apr_status_t rv)
{
    agent_call_t *call = deletion->call;

    if (rv != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return deletion->thread_ids == NULL
        ? agent_response_empty(call, HTTP_NO_CONTENT)
        : agent_response_json(call, HTTP_OK,
                              apr_psprintf(call->pool, "{\"pruned_count\":%d}",
                                           deletion->pruned));
}

/* The result of a deletion that ends early; see deletion.h. */
static apr_status_t end_early(const deletion_t *deletion, apr_status_t rv)
{
    return deletion->begun && deletion->thread_ids == NULL ? APR_SUCCESS : rv;
}

/* Whether the next piece needs a valid key: a thread whose deletion has begun
 * is deleted without one. */
static bool needs_key(const deletion_t *deletion)
{
    return deletion->thread_ids != NULL
        ? !deletion->begun && deletion->position == NULL
        : deletion->with_threads;
}

/* Deletes a piece, unless the request has to end. */
static apr_status_t take_piece(deletion_t *deletion, agent_wake_reason_t reason,
                               apr_pool_t *scratch)
{
    agent_call_t *call = deletion->call;

    if (reason == AGENT_REASON_KEY_INVALID) {
        return agent_invalid_key_set(call);
    }
    if (reason == AGENT_REASON_STOPPING) {
        return agent_error_set(&call->err, AGENT_E_SHUTTING_DOWN, NULL, NULL,
                               call->pool);
    }
    if (needs_key(deletion) && agent_invalid_key_check(call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    return deletion->delete_piece(deletion, call->child->turn_db, scratch);
}

static agent_turn_t take_turn(void *baton, agent_wake_reason_t reason,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    deletion_t *deletion = baton;
    agent_call_t *call = deletion->call;
    apr_status_t rv;

    if (reason <= AGENT_REASON_HALF_CLOSED) {
        return AGENT_TURN_DONE;
    }
    rv = take_piece(deletion, reason, scratch);
    if (APR_STATUS_IS_EAGAIN(rv)
        || (rv != APR_SUCCESS && call->err->id == AGENT_E_POOL_EXHAUSTED)) {
        return AGENT_TURN_MORE;
    }
    (void)!respond(deletion, end_early(deletion, rv));
    return AGENT_TURN_DONE;
}

static int delete_all(deletion_t *deletion, const char *key)
{
    agent_call_t *call = deletion->call;
    agent_parking_t parking = {.registry = call->child->waiters,
                               .key = key,
                               .deployment_id = call->ref.deployment_id,
                               .account = agent_requester_account(call),
                               .identity = call->identity,
                               .take_turn = take_turn,
                               .baton = deletion};
    apr_status_t rv = deletion->delete_piece(deletion, call->db, call->pool);
    int result;

    if (!APR_STATUS_IS_EAGAIN(rv)) {
        return respond(deletion, rv);
    }
    agent_body_release(call);
    rv = agent_park(&result, call->r, &parking, &call->err);
    return rv == APR_SUCCESS ? result
                             : respond(deletion, end_early(deletion, rv));
}

int agent_deletion_delete_thread(agent_call_t *call)
{
    deletion_t *deletion = apr_pcalloc(call->pool, sizeof(*deletion));

    deletion->call = call;
    deletion->delete_piece = delete_thread;
    return delete_all(deletion, call->ref.thread_id);
}

int agent_deletion_delete_run(agent_call_t *call)
{
    deletion_t *deletion = apr_pcalloc(call->pool, sizeof(*deletion));

    deletion->call = call;
    deletion->delete_piece = delete_run;
    return delete_all(deletion, call->ref.run_id);
}

int agent_deletion_delete_assistant(agent_call_t *call, bool with_threads)
{
    deletion_t *deletion = apr_pcalloc(call->pool, sizeof(*deletion));

    deletion->call = call;
    deletion->delete_piece = delete_assistant;
    deletion->with_threads = with_threads;
    return delete_all(deletion, call->assistant_id);
}

int agent_deletion_prune_threads(agent_call_t *call,
                                 const apr_array_header_t *thread_ids,
                                 bool keeps_latest)
{
    deletion_t *deletion = apr_pcalloc(call->pool, sizeof(*deletion));

    deletion->call = call;
    deletion->delete_piece = prune_threads;
    deletion->thread_ids = thread_ids;
    deletion->keeps_latest = keeps_latest;
    return delete_all(deletion, call->ref.deployment_id);
}
