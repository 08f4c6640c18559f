/* SPDX-License-Identifier: Apache-2.0 */
/* POST /runs/batch: create many stateless runs, all or none. */
#include "handlers.h"

#include "../core/wake.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/schema.h"
#include "creation.h"

static apr_status_t read_headers(agent_run_batch_t *batch, agent_call_t *call)
{
    agent_run_creation_t creation = {0};

    if (agent_creation_read_headers(&creation, call) != APR_SUCCESS
        || agent_creation_read_configurable(&batch->headers, call)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (creation.idempotency_key != NULL) {
        return agent_error_set(&call->err, AGENT_E_INVALID,
                               "Header Idempotency-Key: expected none, it "
                               "stands for one run and not for a batch.",
                               NULL, call->pool);
    }
    batch->user_id = creation.user_id;
    return APR_SUCCESS;
}

static const char **make_list(const agent_call_t *call, int count)
{
    return apr_pcalloc(call->pool, (apr_size_t)count * sizeof(char *));
}

/* Puts the item's index before the error's detail. */
static apr_status_t name_item(agent_call_t *call, int item)
{
    const char *detail = call->err->detail;

    return agent_error_setf(&call->err, call->err->id, call->pool, "/%d%s%s",
                            item, *detail == '/' ? "" : ": ", detail);
}

/* Makes the ids of each item's thread and run, and resolves its assistant. */
static apr_status_t read_items(agent_run_batch_t *batch,
                               const agent_fields_t *const *items,
                               agent_call_t *call)
{
    const char **thread_ids = make_list(call, batch->count);
    const char **run_ids = make_list(call, batch->count);
    const char **assistant_ids = make_list(call, batch->count);
    const char **graph_ids = make_list(call, batch->count);

    for (int i = 0; i < batch->count; i++) {
        agent_run_creation_t item = {0};

        if (agent_creation_resolve(&item, items[i], false, call)
            != APR_SUCCESS) {
            return name_item(call, i);
        }
        thread_ids[i] = agent_creation_new_id(call);
        run_ids[i] = agent_creation_new_id(call);
        assistant_ids[i] = item.assistant_id;
        graph_ids[i] = item.graph_id ? item.graph_id : "";
    }
    batch->thread_ids = thread_ids;
    batch->run_ids = run_ids;
    batch->assistant_ids = assistant_ids;
    batch->graph_ids = graph_ids;
    return APR_SUCCESS;
}

static apr_status_t read_batch(agent_run_batch_t *batch, agent_call_t *call)
{
    const agent_fields_t *const *items;
    agent_raw_t value;

    if (read_headers(batch, call) != APR_SUCCESS
        || agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_runs(&items, &batch->count, value, &call->err,
                             call->pool)
            != APR_SUCCESS
        || read_items(batch, items, call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    batch->deployment_id = call->ref.deployment_id;
    batch->known_graph_ids = agent_creation_list_graphs(call);
    batch->feedback_url = agent_location_feedback_url(call->dir);
    batch->thread_ttl = agent_creation_thread_ttl(call);
    batch->request = call->body;
    return APR_SUCCESS;
}

int agent_handle_run_batch(agent_call_t *call)
{
    agent_run_batch_t batch = {0};
    const char *body;

    if (read_batch(&batch, call) != APR_SUCCESS
        || agent_run_create_batch(&body, call->db, &batch, &call->err,
                                  call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_wake_ready(call->child->wake_fd, call->ref.deployment_id, NULL);
    return agent_response_json(call, HTTP_OK, body);
}
