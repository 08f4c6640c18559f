/* SPDX-License-Identifier: Apache-2.0 */
/* POST /threads/{thread_id}/runs: start a run in the background. */
#include "handlers.h"

#include <string.h>

#include <apr_escape.h>
#include <apr_sha1.h>
#include <apr_strings.h>

#include "../core/uuid.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/run.h"
#include "../model/schema.h"

/* Longest x-user-id, Idempotency-Key and x-api-key. */
#define USER_ID_BYTES         128
#define IDEMPOTENCY_KEY_BYTES 255
#define API_KEY_BYTES         256

/* A graph's name, its assistant's id, or the id of a stored assistant. */
static apr_status_t resolve_assistant(agent_run_creation_t *creation,
                                      agent_call_t *call)
{
    const char *asked = agent_json_string(call->json, "assistant_id", "");
    const agent_graph_t *graph = agent_config_find_graph(call->child->config,
                                                         asked);
    char id[AGENT_UUID_SIZE];

    if (graph == NULL && !agent_uuid_parse(id, asked)) {
        return agent_error_setf(&call->err, AGENT_E_ASSISTANT_NOT_FOUND,
                                call->pool,
                                "No assistant found for \"%s\". Make sure the "
                                "assistant ID is for a valid assistant or a "
                                "valid graph ID.",
                                asked);
    }
    if (graph == NULL) {
        graph = agent_config_find_assistant(call->child->config, id);
    }
    creation->graph_id = graph ? graph->name : NULL;
    creation->assistant_id = graph ? graph->assistant_id
                                   : apr_pstrdup(call->pool, id);
    return APR_SUCCESS;
}

/* The same key on another thread or with another body is another request. */
static const char *hash_request(const agent_call_t *call)
{
    unsigned char digest[APR_SHA1_DIGESTSIZE];
    apr_sha1_ctx_t context;

    apr_sha1_init(&context);
    apr_sha1_update(&context, call->ids[1], (unsigned int)strlen(call->ids[1]));
    apr_sha1_update(&context, call->body, (unsigned int)strlen(call->body));
    apr_sha1_final(digest, &context);
    return apr_pescape_hex(call->pool, digest, sizeof(digest), 0);
}

static apr_status_t read_identities(agent_run_creation_t *creation,
                                    agent_call_t *call)
{
    const char *api_key;

    if (agent_request_identity(&creation->user_id, call, "x-user-id",
                               USER_ID_BYTES)
            != APR_SUCCESS
        || agent_request_identity(&api_key, call, "x-api-key", API_KEY_BYTES)
            != APR_SUCCESS
        || agent_request_identity(&creation->idempotency_key, call,
                                  "Idempotency-Key", IDEMPOTENCY_KEY_BYTES)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (creation->user_id == NULL) {
        creation->user_id = "";
    }
    return APR_SUCCESS;
}

static apr_status_t read_creation(agent_run_creation_t *creation,
                                  agent_call_t *call)
{
    char run_id[AGENT_UUID_SIZE];

    if (read_identities(creation, call) != APR_SUCCESS
        || agent_request_body(call) != APR_SUCCESS
        || agent_schema_run(call->json, &call->err, call->pool) != APR_SUCCESS
        || resolve_assistant(creation, call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    agent_uuid_v7(run_id);
    creation->account_id = call->account_id;
    creation->thread_id = call->ids[1];
    creation->run_id = apr_pstrdup(call->pool, run_id);
    creation->graph_ids = call->child->graph_names;
    creation->strategy = agent_json_string(call->json, "multitask_strategy",
                                           agent_config_multitask(call->dir));
    creation->request_hash = creation->idempotency_key ? hash_request(call)
                                                       : NULL;
    creation->request = call->body;
    return APR_SUCCESS;
}

/* With an Idempotency-Key the stored run may be another than the one made
 * here: the record says which. */
static const char *read_run_id(const agent_call_t *call,
                               const agent_run_creation_t *creation,
                               const char *body)
{
    agent_error_t *err;
    json_object *run;

    if (creation->idempotency_key == NULL
        || agent_json_parse(&run, body, strlen(body), &err, call->pool)
            != APR_SUCCESS) {
        return creation->run_id;
    }
    return agent_json_string(run, "run_id", creation->run_id);
}

apr_status_t agent_create_run(const char **body, agent_call_t *call)
{
    agent_run_creation_t creation = {0};

    if (read_creation(&creation, call) != APR_SUCCESS
        || agent_run_create(body, call->db, &creation, &call->err, call->pool)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    call->ids[2] = read_run_id(call, &creation, *body);
    agent_wake_supervisor(call, 'R');
    return APR_SUCCESS;
}

int agent_handle_run_create(agent_call_t *call)
{
    const char *body;

    if (agent_create_run(&body, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, call->ids[1], call->ids[2], NULL);
    return agent_response_json(call, HTTP_OK, body);
}
