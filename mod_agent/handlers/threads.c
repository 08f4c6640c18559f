/* SPDX-License-Identifier: Apache-2.0 */
/* /threads: threads and their events. */
#include "handlers.h"

#include <apr_strings.h>

#include "../core/uuid.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/schema.h"
#include "../model/thread.h"
#include "../stream/deletion.h"
#include "../stream/large_values.h"
#include "../stream/thread_copy.h"
#include "../stream/thread_stream.h"

/* The client's id in lower case, or a new one. */
static const char *choose_thread_id(const agent_call_t *call)
{
    char id[AGENT_UUID_SIZE];

    if (!agent_uuid_parse(id,
                          agent_field_string(call->fields, "thread_id", ""))) {
        agent_uuid_v7(id);
    }
    return apr_pstrdup(call->pool, id);
}

int agent_handle_thread_create(agent_call_t *call)
{
    const char *body;
    agent_raw_t value;

    if (agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_thread(&call->fields, value, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    call->ref.thread_id = choose_thread_id(call);
    if (agent_thread_create(
            &body, call->db, &call->ref,
            agent_field_string(call->fields, "if_exists", "raise"), call->body,
            &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_thread_get(agent_call_t *call)
{
    const char *const *include = NULL;
    const char *body;
    const char *cursor;
    apr_pool_t *pool;

    apr_pool_create(&pool, call->pool);
    /* Checked and otherwise ignored: no thread has a time to live. */
    if (agent_request_words(&include, call, "include", agent_thread_fields)
            != APR_SUCCESS
        || agent_thread_get(&body, &cursor, call->db, &call->ref, &call->err,
                            pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_large_values_respond(call, body, cursor, pool);
}

int agent_handle_thread_delete(agent_call_t *call)
{
    return agent_deletion_delete_thread(call);
}

int agent_handle_thread_copy(agent_call_t *call)
{
    return agent_thread_copy_respond(call);
}

int agent_handle_thread_stream(agent_call_t *call)
{
    agent_response_set_location(call,
                                apr_pstrcat(call->pool, "/threads/",
                                            call->ref.thread_id, "/stream",
                                            NULL));
    return agent_thread_stream(call);
}
