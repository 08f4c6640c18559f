/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of records; see page.h. PostgreSQL takes some 25 ms to compose a
 * megabyte: without turns a hundred clients with a list of a few megabytes each
 * would take all threads and database connections of the child.
 */
#include "page.h"

#include <apr_strings.h>

#include "../http/body.h"
#include "../http/problem.h"
#include "../http/response.h"
#include "../wait/park.h"

typedef struct reading_t {
    agent_call_t *call;
    agent_page_read_fn_t read;
    const void *request;
    /* A copy of the request's: that one is freed while the request waits. */
    const char *body;
} reading_t;

/* The headers are sent after the turn. */
static int send_page(agent_call_t *call, const agent_page_t *page)
{
    agent_response_set_next(call, apr_pstrdup(call->pool, page->next));
    agent_response_set_total(call, apr_pstrdup(call->pool, page->total));
    return agent_response_json_transient(call, HTTP_OK, page->body);
}

/* A client that has closed its sending side still reads. */
static agent_turn_t take_turn(void *baton, agent_wake_reason_t reason,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    const reading_t *reading = baton;
    agent_call_t *call = reading->call;
    agent_page_t page = {0};
    apr_status_t rv;

    if (reason == AGENT_REASON_CLIENT_GONE) {
        return AGENT_TURN_DONE;
    }
    call->body = reading->body;
    rv = reading->read(&page, call, call->child->turn_db, reading->request,
                       NULL, scratch);
    /* The pool has waited for a connection. */
    if (rv != APR_SUCCESS && call->err->id == AGENT_E_POOL_EXHAUSTED
        && reason != AGENT_REASON_STOPPING) {
        return AGENT_TURN_MORE;
    }
    (void)!(rv == APR_SUCCESS ? send_page(call, &page)
                              : agent_problem_send(call));
    return AGENT_TURN_DONE;
}

static int read_in_turn(agent_call_t *call, agent_page_read_fn_t read,
                        const void *request)
{
    reading_t *reading = apr_pcalloc(call->pool, sizeof(*reading));
    const agent_parking_t parking = {.registry = call->child->waiters,
                                     .key = call->ref.deployment_id,
                                     .deployment_id = call->ref.deployment_id,
                                     .take_turn = take_turn,
                                     .baton = reading};
    int result;

    reading->call = call;
    reading->read = read;
    reading->request = request;
    reading->body = apr_pstrdup(call->pool, call->body);
    agent_body_release(call);
    return agent_park(&result, call->r, &parking, &call->err) == APR_SUCCESS
        ? result
        : agent_problem_send(call);
}

int agent_page_respond(agent_call_t *call, agent_page_read_fn_t read,
                       const void *request)
{
    agent_page_t page = {0};

    if (read(&page, call, call->db, request, AGENT_PAGE_LIMIT, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    if (page.body == NULL) {
        return read_in_turn(call, read, request);
    }
    agent_response_set_next(call, page.next);
    agent_response_set_total(call, page.total);
    return agent_response_json(call, HTTP_OK, page.body);
}
