/* SPDX-License-Identifier: Apache-2.0 */
/* POST /runs/cancel: cancel runs of a thread by id, or all runs by status. */
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../core/uuid.h"
#include "../core/wake.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/run.h"
#include "../model/schema.h"

/* Runs that one transaction cancels, as agent.cancel_runs_by_status rolls back.
 */
#define RUNS_AT_ONCE 40

/* Newest first, so that runs created during this loop are not cancelled. */
static apr_status_t cancel_by_status(agent_call_t *call, const char *status,
                                     const char *action)
{
    char cursor[AGENT_UUID_SIZE] = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    apr_pool_t *scratch;
    bool found = false;

    apr_pool_create(&scratch, call->pool);
    for (;;) {
        const char *before = cursor;
        const char *changed;
        apr_status_t rv;

        apr_pool_clear(scratch);
        rv = agent_run_cancel_by_status(&changed, &before, call->db,
                                        call->ref.deployment_id, status, action,
                                        &call->err, scratch);
        if (rv != APR_SUCCESS) {
            return found && call->err->id == AGENT_E_RUN_NOT_FOUND ? APR_SUCCESS
                                                                   : rv;
        }
        found = true;
        apr_cpystrn(cursor, before, sizeof(cursor));
        agent_wake_cancel(call->child->wake_fd, call->ref.deployment_id,
                          changed);
    }
}

static int compare_newest_first(const void *a, const void *b)
{
    return strcmp(*(const char *const *)b, *(const char *const *)a);
}

/* Sorted, so that a transaction promotes no run that a later one cancels. */
static const apr_array_header_t *read_run_ids(const agent_call_t *call)
{
    apr_array_header_t *ids = agent_field_uuids(call->fields, "run_ids");

    qsort(ids->elts, (size_t)ids->nelts, sizeof(const char *),
          compare_newest_first);
    return ids;
}

static apr_status_t cancel_by_ids(agent_call_t *call, const char *action)
{
    const apr_array_header_t *ids = read_run_ids(call);
    apr_pool_t *scratch;
    bool found = false;
    int count;

    call->ref.thread_id = agent_field_uuid(call->fields, "thread_id");
    apr_pool_create(&scratch, call->pool);
    for (int i = 0; i < ids->nelts; i += count) {
        const char *changed;
        apr_status_t rv;

        apr_pool_clear(scratch);
        count = ids->nelts - i < RUNS_AT_ONCE ? ids->nelts - i : RUNS_AT_ONCE;
        rv = agent_run_cancel_many(&changed, call->db, &call->ref,
                                   &APR_ARRAY_IDX(ids, i, const char *), &count,
                                   action, &call->err, scratch);
        if (rv == APR_SUCCESS) {
            found = true;
            agent_wake_cancel(call->child->wake_fd, call->ref.deployment_id,
                              changed);
        }
        else if (call->err->id != AGENT_E_RUN_NOT_FOUND) {
            return rv;
        }
    }
    return found ? APR_SUCCESS : APR_EGENERAL;
}

/* Only a cancel of a single run may have a reason. */
static apr_status_t refuse_reason(agent_call_t *call)
{
    const char *reason = NULL;

    if (agent_request_text(&reason, call, "reason", HUGE_STRING_LEN)
        != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    return reason == NULL ? APR_SUCCESS
                          : agent_error_set(&call->err, AGENT_E_INVALID,
                                            "Query parameter reason: expected "
                                            "none: it is that of one run.",
                                            NULL, call->pool);
}

int agent_handle_run_cancel_many(agent_call_t *call)
{
    const char *action = "interrupt";
    const char *status;
    agent_raw_t value;
    apr_status_t rv;

    if (agent_request_word(&action, call, "action", agent_cancel_actions)
            != APR_SUCCESS
        || refuse_reason(call) != APR_SUCCESS
        || agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_cancel(&call->fields, value, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    status = agent_field_string(call->fields, "status", NULL);
    rv = status != NULL ? cancel_by_status(call, status, action)
                        : cancel_by_ids(call, action);
    return rv == APR_SUCCESS ? agent_response_empty(call, HTTP_NO_CONTENT)
                             : agent_problem_send(call);
}
