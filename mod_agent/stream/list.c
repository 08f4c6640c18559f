/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of records; see list.h. PostgreSQL takes some 25 ms to compose a
 * megabyte: without turns a hundred clients with a list of a few megabytes each
 * would take all threads and database connections of the child, and the lists
 * that their clients have not read would take its memory.
 */
#include "list.h"

#include <string.h>

#include <apr_strings.h>

#include "../http/body.h"
#include "../http/problem.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../wait/park.h"
#include "invalid_key.h"
#include "large_values.h"

typedef struct reading_t {
    agent_call_t *call;
    agent_list_request_t request;
    /* NULL until the keys are known. */
    agent_large_values_t *parts;
} reading_t;

static apr_status_t read_part(const char **part, const char **next,
                              agent_call_t *call, const void *source,
                              const char *cursor, apr_size_t bytes,
                              apr_pool_t *pool)
{
    return agent_page_read(part, next, call->child->turn_db, source, cursor,
                           bytes, &call->err, pool);
}

static const char *choose_head(const char *kind)
{
    return strcmp(kind, "run") == 0  ? ""
        : strcmp(kind, "items") == 0 ? "{\"items\":["
                                     : "[";
}

static const char *choose_tail(const char *kind)
{
    return strcmp(kind, "run") == 0  ? ""
        : strcmp(kind, "items") == 0 ? "]}"
                                     : "]";
}

static void prepare_parts(reading_t *reading, const agent_page_t *page)
{
    agent_call_t *call = reading->call;
    agent_page_records_t *records = &reading->request.records;

    records->keys = apr_pstrdup(call->pool, page->body);
    if (records->request != NULL) {
        records->request = reading->request.json;
    }
    reading->parts = agent_large_values_make(
        call,
        &(agent_large_source_t){.read = read_part,
                                .baton = records,
                                .head = choose_head(records->kind),
                                .tail = choose_tail(records->kind),
                                .cursor = "1.0"},
        call->pool);
}

/* The headers are sent after the turn. */
static agent_turn_t begin(reading_t *reading, const agent_page_t *page,
                          agent_wake_reason_t reason, apr_pool_t *scratch)
{
    agent_call_t *call = reading->call;

    agent_response_set_next(call, apr_pstrdup(call->pool, page->next));
    agent_response_set_total(call, apr_pstrdup(call->pool, page->total));
    if (reading->request.records.kind == NULL) {
        (void)!agent_response_json_transient(call, HTTP_OK, page->body);
        return AGENT_TURN_DONE;
    }
    prepare_parts(reading, page);
    return agent_large_values_take_turn(reading->parts, reason, scratch);
}

/* A client that has closed its sending side still reads. */
static agent_turn_t take_turn(void *baton, agent_wake_reason_t reason,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    reading_t *reading = baton;
    agent_call_t *call = reading->call;
    agent_page_t page = {0};
    apr_status_t rv;

    if (reading->parts != NULL) {
        return agent_large_values_take_turn(reading->parts, reason, scratch);
    }
    if (reason == AGENT_REASON_CLIENT_GONE) {
        return AGENT_TURN_DONE;
    }
    if (reason == AGENT_REASON_KEY_INVALID) {
        return agent_invalid_key_respond(call, false);
    }
    rv = reading->request.read(&page, call, call->child->turn_db,
                               &reading->request, NULL, scratch);
    if (rv == APR_SUCCESS) {
        return begin(reading, &page, reason, scratch);
    }
    /* The pool has waited for a connection. */
    if (call->err->id == AGENT_E_POOL_EXHAUSTED
        && reason != AGENT_REASON_STOPPING) {
        return AGENT_TURN_MORE;
    }
    (void)!agent_problem_send(call);
    return AGENT_TURN_DONE;
}

static int read_in_turns(agent_call_t *call,
                         const agent_list_request_t *request)
{
    reading_t *reading = apr_pcalloc(call->pool, sizeof(*reading));
    const agent_parking_t parking = {.registry = call->child->waiters,
                                     .key = call->ref.deployment_id,
                                     .deployment_id = call->ref.deployment_id,
                                     .account = agent_requester_account(call),
                                     .identity = call->identity,
                                     .take_turn = take_turn,
                                     .baton = reading};
    int result;

    reading->call = call;
    reading->request = *request;
    reading->request.json = apr_pstrdup(call->pool, request->json);
    agent_body_release(call);
    return agent_park(&result, call->r, &parking, &call->err) == APR_SUCCESS
        ? result
        : agent_problem_send(call);
}

int agent_list_respond(agent_call_t *call, const agent_list_request_t *request)
{
    agent_page_t page = {0};

    if (request->read(&page, call, call->db, request, AGENT_PAGE_LIMIT,
                      call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    if (page.body == NULL) {
        return read_in_turns(call, request);
    }
    agent_response_set_next(call, page.next);
    agent_response_set_total(call, page.total);
    return agent_response_json(call, HTTP_OK, page.body);
}
