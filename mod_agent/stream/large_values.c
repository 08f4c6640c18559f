/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends large values in parts; see large_values.h. A child has one part of each
 * response in memory, at most, and PostgreSQL composes one part at a time. A
 * checkpoint does not change, so the parts belong together; a response whose
 * checkpoint is deleted during this is aborted.
 */
#include "large_values.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/uuid.h"
#include "../http/problem.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/values.h"
#include "../wait/output.h"
#include "../wait/park.h"
#include "invalid_key.h"
#include "part.h"

/* A part takes a sixteenth of the output that the child may still hold, but
 * LEAST_PART at least: parts shrink before a client must be disconnected. */
#define PART_SHARE 16
#define LEAST_PART (64 * 1024)

struct agent_large_values_t {
    agent_call_t *call;
    agent_large_read_fn_t read;
    const void *baton;
    /* The thread of a checkpoint's values. */
    agent_run_ref_t ref;
    /* The text before the values, in a pool of its own, and after them; the
     * first is "", and its pool NULL, when it was sent. */
    const char *head;
    const char *tail;
    apr_pool_t *head_pool;
    char cursor[AGENT_VALUES_CURSOR_SIZE];
    bool begun;
    /* Of the next part. */
    int failures;
};

static apr_status_t read_values(const char **part, const char **next,
                                agent_call_t *call, const void *ref,
                                const char *cursor, apr_size_t bytes,
                                apr_pool_t *pool)
{
    return agent_values_read(part, next, call->child->turn_db, ref, cursor,
                             bytes, &call->err, pool);
}

static apr_size_t choose_bytes(void)
{
    apr_size_t bytes = agent_output_room() / PART_SHARE;

    bytes = bytes < AGENT_VALUES_BYTES ? bytes : AGENT_VALUES_BYTES;
    return bytes > LEAST_PART ? bytes : LEAST_PART;
}

static apr_status_t begin(agent_large_values_t *values)
{
    if (values->begun) {
        return APR_SUCCESS;
    }
    values->begun = true;
    return agent_response_begin(values->call, "application/json");
}

static void drop_head(agent_large_values_t *values)
{
    values->head = "";
    if (values->head_pool != NULL) {
        apr_pool_destroy(values->head_pool);
        values->head_pool = NULL;
    }
}

apr_status_t agent_large_values_send(agent_large_values_t *values,
                                     apr_pool_t *scratch)
{
    agent_call_t *call = values->call;
    const char *texts[] = {values->head, NULL, "", NULL};
    const char *next;
    apr_status_t rv = values->read(&texts[1], &next, call, values->baton,
                                   values->cursor, choose_bytes(), scratch);

    agent_part_count(&values->failures, call, rv);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (next == NULL) {
        texts[2] = values->tail;
    }
    else {
        apr_cpystrn(values->cursor, next, sizeof(values->cursor));
    }
    if (begin(values) != APR_SUCCESS
        || agent_response_write_parts(call, texts) != APR_SUCCESS) {
        return APR_ECONNABORTED;
    }
    drop_head(values);
    return next == NULL || call->r->header_only ? APR_EOF : APR_EAGAIN;
}

agent_turn_t agent_large_values_take_turn(agent_large_values_t *values,
                                          agent_wake_reason_t reason,
                                          apr_pool_t *scratch)
{
    apr_status_t rv;

    /* Aborts, so that a client that still reads does not take the parts for the
     * whole. */
    if (reason == AGENT_REASON_CLIENT_GONE) {
        agent_response_abort(values->call);
        return AGENT_TURN_DONE;
    }
    if (reason == AGENT_REASON_KEY_INVALID) {
        return agent_invalid_key_respond(values->call, values->begun);
    }
    do {
        apr_pool_t *pool;

        apr_pool_create(&pool, scratch);
        rv = agent_large_values_send(values, pool);
        apr_pool_destroy(pool);
    } while (rv == APR_EAGAIN && reason == AGENT_REASON_STOPPING);
    if (rv == APR_EAGAIN) {
        return AGENT_TURN_MORE;
    }
    return rv == APR_EOF || rv == APR_ECONNABORTED
        ? AGENT_TURN_DONE
        : agent_part_failed(values->call, values->begun, values->failures,
                            reason);
}

bool agent_large_values_has_exhausted_retries(
    const agent_large_values_t *values)
{
    return agent_part_has_exhausted_retries(values->call, values->failures);
}

static agent_turn_t take_turn(void *baton, agent_wake_reason_t reason,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    return agent_large_values_take_turn(baton, reason, scratch);
}

/* pool: of head. Error: INTERNAL, in call->err. */
static apr_status_t prepare(agent_large_values_t *values, const char *body,
                            const char *cursor, apr_pool_t *pool)
{
    const char *mark = strchr(body, AGENT_VALUES_MARK);

    if (mark == NULL || strlen(cursor) >= sizeof(values->cursor)) {
        return agent_error_set(&values->call->err, AGENT_E_INTERNAL, NULL,
                               "a function returned an invalid cursor, or no "
                               "mark for the values",
                               values->call->pool);
    }
    values->head = apr_pstrmemdup(pool, body, (apr_size_t)(mark - body));
    values->head_pool = pool;
    values->tail = apr_pstrdup(values->call->pool, mark + 1);
    apr_cpystrn(values->cursor, cursor, sizeof(values->cursor));
    return APR_SUCCESS;
}

static agent_large_values_t *make(agent_call_t *call,
                                  const agent_run_ref_t *ref)
{
    agent_large_values_t *values = apr_pcalloc(call->pool, sizeof(*values));

    values->call = call;
    values->read = read_values;
    values->baton = &values->ref;
    values->ref = *ref;
    return values;
}

agent_large_values_t *agent_large_values_make(
    agent_call_t *call, const agent_large_source_t *source, apr_pool_t *pool)
{
    agent_large_values_t *values = apr_pcalloc(pool, sizeof(*values));

    values->call = call;
    values->read = source->read;
    values->baton = source->baton;
    values->head = source->head;
    values->tail = source->tail;
    values->begun = source->begun;
    apr_cpystrn(values->cursor, source->cursor, sizeof(values->cursor));
    return values;
}

agent_turn_t agent_large_values_begin(agent_large_values_t **out,
                                      agent_call_t *call,
                                      const agent_run_ref_t *ref,
                                      const char *body, const char *cursor,
                                      bool begun, agent_wake_reason_t reason,
                                      apr_pool_t *scratch)
{
    agent_large_values_t *values = make(call, ref);
    apr_pool_t *pool;

    values->begun = begun;
    *out = values;
    apr_pool_create(&pool, call->pool);
    if (prepare(values, body, cursor, pool) != APR_SUCCESS) {
        return agent_part_failed(values->call, values->begun, 0, reason);
    }
    return agent_large_values_take_turn(values, reason, scratch);
}

int agent_large_values_respond(agent_call_t *call, const char *body,
                               const char *cursor, apr_pool_t *pool)
{
    agent_parking_t parking = {.registry = call->child->waiters,
                               .deployment_id = call->ref.deployment_id,
                               .account = agent_requester_account(call),
                               .identity = call->identity,
                               .take_turn = take_turn};
    agent_large_values_t *values;
    char key[AGENT_UUID_SIZE];
    int result;

    if (cursor == NULL) {
        return agent_response_json_of(call, HTTP_OK, body, pool);
    }
    values = make(call, &call->ref);
    if (prepare(values, body, cursor, pool) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    /* A new key, which is never notified: changes of the thread do not matter
     * here. */
    agent_uuid_v7(key);
    parking.key = apr_pstrdup(call->pool, key);
    parking.baton = values;
    if (agent_park(&result, call->r, &parking, &call->err) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return result;
}
