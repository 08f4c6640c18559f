/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports of accounts; see export.h. A child has one part of each in memory,
 * and PostgreSQL composes one part at a time: this does not grow with the
 * account. A client that does not read takes no thread and no connection. An
 * export belongs to no deployment: it counts as a stream of its account, and
 * takes no slot that is guaranteed to a deployment.
 */
#include "export.h"

#include <apr_strings.h>

#include "../core/uuid.h"
#include "../http/body.h"
#include "../http/problem.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/account.h"
#include "../wait/park.h"
#include "invalid_key.h"
#include "part.h"

/* Of a part, which may have one row more. */
#define PART_BYTES (128 * 1024)

typedef struct export_t {
    agent_call_t *call;
    /* Of the next part, in a pool of its own: keys may have kilobytes. NULL:
     * the first one. */
    const char *cursor;
    apr_pool_t *cursor_pool;
    bool begun;
    /* Of the next part. */
    int failures;
} export_t;

static void move_on(export_t *export, const char *next)
{
    apr_pool_t *pool;

    apr_pool_create(&pool, export->call->pool);
    export->cursor = apr_pstrdup(pool, next);
    if (export->cursor_pool != NULL) {
        apr_pool_destroy(export->cursor_pool);
    }
    export->cursor_pool = pool;
}

/* APR_EAGAIN: there is more; APR_EOF: this was the last part; APR_ECONNABORTED:
 * the client has disconnected; otherwise call->err is set. */
static apr_status_t send_part(export_t *export, apr_pool_t *scratch)
{
    agent_call_t *call = export->call;
    const agent_account_part_t part = {.account_id = call->identity->account_id,
                                       .after = export->cursor,
                                       .limit = PART_BYTES};
    agent_page_t page = {0};
    apr_status_t rv = agent_account_export(&page, call->child->turn_db, &part,
                                           &call->err, scratch);

    agent_part_count(&export->failures, call, rv);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (!export->begun) {
        export->begun = true;
        rv = agent_response_begin(call, "application/x-ndjson");
    }
    if (rv != APR_SUCCESS
        || agent_response_write(call, page.body) != APR_SUCCESS) {
        return APR_ECONNABORTED;
    }
    if (page.next == NULL || call->r->header_only) {
        return APR_EOF;
    }
    move_on(export, page.next);
    return APR_EAGAIN;
}

/* An export may have any length: a child that is stopping ends it so that the
 * client sees that it is incomplete. */
static agent_turn_t take_turn(void *baton, agent_wake_reason_t reason,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    export_t *export = baton;
    apr_status_t rv;

    if (reason == AGENT_REASON_CLIENT_GONE
        || (reason == AGENT_REASON_STOPPING && export->begun)) {
        agent_response_abort(export->call);
        return AGENT_TURN_DONE;
    }
    if (reason == AGENT_REASON_KEY_INVALID) {
        return agent_invalid_key_respond(export->call, export->begun);
    }
    rv = send_part(export, scratch);
    if (rv == APR_EAGAIN && reason != AGENT_REASON_STOPPING) {
        return AGENT_TURN_MORE;
    }
    if (rv == APR_EAGAIN) {
        agent_response_abort(export->call);
        return AGENT_TURN_DONE;
    }
    return rv == APR_EOF || rv == APR_ECONNABORTED
        ? AGENT_TURN_DONE
        : agent_part_failed(export->call, export->begun, export->failures,
                            reason);
}

int agent_export_respond(agent_call_t *call)
{
    export_t *export = apr_pcalloc(call->pool, sizeof(*export));
    char *key = apr_palloc(call->pool, AGENT_UUID_SIZE);
    const agent_parking_t parking = {.registry = call->child->waiters,
                                     /* No change wakes it. */
                                     .key = key,
                                     .account = agent_requester_account(call),
                                     .identity = call->identity,
                                     .is_stream = true,
                                     .has_end = true,
                                     .take_turn = take_turn,
                                     .baton = export};
    int result;

    agent_uuid_v7(key);
    export->call = call;
    agent_body_release(call);
    return agent_park(&result, call->r, &parking, &call->err) == APR_SUCCESS
        ? result
        : agent_problem_send(call);
}
