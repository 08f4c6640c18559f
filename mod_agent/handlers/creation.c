/* SPDX-License-Identifier: Apache-2.0 */
/* Creates runs, from the request to the supervisor; see creation.h. */
#include "creation.h"

#include <string.h>

#include <apr_escape.h>
#include <apr_sha1.h>
#include <apr_strings.h>

#include "../config/graph.h"
#include "../core/header.h"
#include "../core/json.h"
#include "../core/scan.h"
#include "../core/uuid.h"
#include "../core/wake.h"
#include "../http/request.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/schema.h"
#include "../model/state.h"
#include "../wait/park.h"

/* Limits of the headers' values. */
#define IDEMPOTENCY_KEY_BYTES 255
#define API_KEY_BYTES         256
/* Most headers that a run gets, and most bytes of their names and values. */
#define CONFIGURABLE_HEADERS 64
#define CONFIGURABLE_BYTES   8192

/* A bigint as text. */
#define CURSOR_SIZE 21

const char *agent_creation_new_id(const agent_call_t *call)
{
    char id[AGENT_UUID_SIZE];

    agent_uuid_v7(id);
    return apr_pstrdup(call->pool, id);
}

const char *agent_creation_choose_id(const agent_call_t *call, const char *key)
{
    const char *id = agent_field_uuid(call->fields, key);

    return id != NULL ? id : agent_creation_new_id(call);
}

const char *agent_creation_print_ttl(const agent_call_t *call,
                                     apr_interval_time_t ttl)
{
    return ttl == 0
        ? NULL
        : apr_pstrcat(call->pool, agent_state_print_seconds(ttl, call->pool),
                      " s", NULL);
}

const char *agent_creation_thread_ttl(const agent_call_t *call)
{
    return agent_creation_print_ttl(call, agent_location_thread_ttl(call->dir));
}

const char *const *agent_creation_list_graphs(const agent_call_t *call)
{
    return agent_graph_list_names(
        call->child->config, agent_location_deployment(call->dir), call->pool);
}

/* Only the log names the rule, not the response. */
static apr_status_t refuse_webhook(agent_call_t *call, const char *expected,
                                   const char *rule)
{
    const char *detail = apr_psprintf(call->pool, "/webhook: expected %s.",
                                      expected);

    return agent_error_set(&call->err, AGENT_E_WEBHOOK, detail,
                           apr_psprintf(call->pool, "%s (%s)", detail, rule),
                           call->pool);
}

/* Refuses a URL that the delivery would refuse. Addresses of the own host are
 * checked by the server that delivers, which may be another one. */
static apr_status_t check_webhook(const agent_fields_t *body,
                                  agent_call_t *call)
{
    const agent_egress_t *egress = agent_config_webhook_egress(
        call->child->config);
    const char *url = agent_field_string(body, "webhook", NULL);
    agent_egress_target_t target;
    const char *expected;

    if (url == NULL) {
        return APR_SUCCESS;
    }
    if (egress == NULL) {
        return agent_error_setf(&call->err, AGENT_E_INVALID, call->pool,
                                "/webhook: expected none: this server does "
                                "not deliver webhooks.");
    }
    expected = agent_egress_read_url(&target, url, call->pool);
    if (expected != NULL) {
        return agent_error_setf(&call->err, AGENT_E_INVALID, call->pool,
                                "/webhook: expected %s.", expected);
    }
    expected = agent_egress_check(egress, NULL, &target, call->pool);
    return expected == NULL
        ? APR_SUCCESS
        : refuse_webhook(call, expected,
                         agent_egress_directive(egress, &target, call->pool));
}

/* assistant_id is the id of an assistant, or a graph's name, which stands for
 * its system assistant. Whether there is one the database knows, since other
 * hosts may execute the graph. */
static void resolve_assistant(agent_run_creation_t *creation,
                              const agent_fields_t *body, agent_call_t *call)
{
    const char *asked = agent_field_string(body, "assistant_id", "");
    const agent_graph_t *graph;
    char id[AGENT_UUID_SIZE];

    if (agent_uuid_parse(id, asked)) {
        graph = agent_graph_find_assistant(
            call->child->config, agent_location_deployment(call->dir), id);
        creation->graph_id = graph ? graph->name : NULL;
    }
    else {
        agent_uuid_v5(id, asked);
        creation->graph_id = asked;
    }
    creation->assistant_id = apr_pstrdup(call->pool, id);
}

apr_status_t agent_creation_resolve(agent_run_creation_t *creation,
                                    const agent_fields_t *body, bool is_awaited,
                                    agent_call_t *call)
{
    if (agent_schema_endpoint(body, call->ref.thread_id, is_awaited, &call->err,
                              call->pool)
            != APR_SUCCESS
        || check_webhook(body, call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    resolve_assistant(creation, body, call);
    return APR_SUCCESS;
}

/* The hash of thread and body, which a repeated Idempotency-Key must match. */
static const char *hash_request(const agent_call_t *call)
{
    const char *thread_id = call->ref.thread_id ? call->ref.thread_id : "";
    unsigned char digest[APR_SHA1_DIGESTSIZE];
    apr_sha1_ctx_t context;

    apr_sha1_init(&context);
    apr_sha1_update(&context, thread_id, (unsigned int)strlen(thread_id));
    apr_sha1_update(&context, call->body, (unsigned int)strlen(call->body));
    apr_sha1_final(digest, &context);
    return apr_pescape_hex(call->pool, digest, sizeof(digest), 0);
}

apr_status_t agent_creation_read_headers(agent_run_creation_t *creation,
                                         agent_call_t *call)
{
    const char *api_key;

    if (agent_requester_user(&creation->user_id, call) != APR_SUCCESS
        || agent_request_identifier(&api_key, call, "x-api-key", API_KEY_BYTES)
            != APR_SUCCESS
        || agent_request_identifier(&creation->idempotency_key, call,
                                    "Idempotency-Key", IDEMPOTENCY_KEY_BYTES)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    return APR_SUCCESS;
}

/* A member of the object. *bytes: those of all so far. */
static apr_status_t add_header(apr_array_header_t *members, size_t *bytes,
                               const apr_table_entry_t *header,
                               agent_call_t *call)
{
    size_t length = strlen(header->val);
    char *name = apr_pstrdup(call->pool, header->key);

    ap_str_tolower(name);
    *bytes += strlen(name) + length;
    if (members->nelts == CONFIGURABLE_HEADERS || *bytes > CONFIGURABLE_BYTES) {
        return agent_error_setf(&call->err, AGENT_E_HEAD_TOO_LARGE, call->pool,
                                "The headers that the run gets: expected at "
                                "most %d, of %d bytes together.",
                                CONFIGURABLE_HEADERS, CONFIGURABLE_BYTES);
    }
    if (!agent_scan_is_utf8(header->val, length)) {
        return agent_error_setf(&call->err, AGENT_E_BAD_REQUEST, call->pool,
                                "Header %s: expected UTF-8.", name);
    }
    APR_ARRAY_PUSH(members, const char *) = apr_pstrcat(
        call->pool, agent_json_quote(name, call->pool), ":",
        agent_json_quote(header->val, call->pool), NULL);
    return APR_SUCCESS;
}

/* The members in which graphs find the authenticated user. No header can have
 * their names (core/header.c). */
static apr_status_t add_user(apr_array_header_t *members, agent_call_t *call)
{
    const char *printed;
    const char *user;

    if (agent_requester_user(&user, call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    printed = agent_requester_print(call, user);
    if (printed != NULL) {
        APR_ARRAY_PUSH(members, const char *) = printed;
    }
    return APR_SUCCESS;
}

apr_status_t agent_creation_read_configurable(const char **out,
                                              agent_call_t *call)
{
    const apr_array_header_t *patterns = agent_location_headers(call->dir);
    const apr_array_header_t *headers = apr_table_elts(call->r->headers_in);
    apr_array_header_t *members = apr_array_make(call->pool, 4,
                                                 sizeof(const char *));
    size_t bytes = 0;

    *out = NULL;
    for (int i = 0; patterns != NULL && i < headers->nelts; i++) {
        const apr_table_entry_t *header = &APR_ARRAY_IDX(
            headers, i, const apr_table_entry_t);

        if (agent_header_is_selected(patterns, header->key)
            && add_header(members, &bytes, header, call) != APR_SUCCESS) {
            return APR_EGENERAL;
        }
    }
    if (add_user(members, call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (members->nelts > 0) {
        *out = apr_pstrcat(call->pool, "{",
                           apr_array_pstrcat(call->pool, members, ','), "}",
                           NULL);
    }
    return APR_SUCCESS;
}

/* call->ref.thread_id NULL: on a new thread. */
static apr_status_t read_creation(agent_run_creation_t *creation,
                                  bool is_awaited, agent_call_t *call)
{
    agent_raw_t value;

    if (agent_creation_read_headers(creation, call) != APR_SUCCESS
        || agent_creation_read_configurable(&creation->headers, call)
            != APR_SUCCESS
        || agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_run(&call->fields, value, &call->err, call->pool)
            != APR_SUCCESS
        || agent_creation_resolve(creation, call->fields, is_awaited, call)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    creation->ref = call->ref;
    if (creation->ref.thread_id == NULL) {
        creation->ref.thread_id = agent_creation_new_id(call);
    }
    creation->ref.run_id = agent_creation_new_id(call);
    creation->known_graph_ids = agent_creation_list_graphs(call);
    creation->strategy = agent_field_string(
        call->fields, "multitask_strategy",
        agent_location_multitask(call->dir));
    creation->request_hash = creation->idempotency_key ? hash_request(call)
                                                       : NULL;
    creation->feedback_url = agent_location_feedback_url(call->dir);
    creation->thread_ttl = agent_creation_thread_ttl(call);
    creation->request = call->body;
    return APR_SUCCESS;
}

static const char *read_id(const agent_call_t *call, const char *record,
                           const char *key)
{
    return agent_raw_string(agent_raw_get(agent_raw_read(record), key),
                            call->pool);
}

/* Sets call->ref to the new run; with an Idempotency-Key to the run of the
 * record, which may be an earlier one. */
static void set_ref(agent_call_t *call, const agent_run_creation_t *creation,
                    const char *record)
{
    call->ref = creation->ref;
    if (creation->idempotency_key != NULL) {
        call->ref.thread_id = read_id(call, record, "thread_id");
        call->ref.run_id = read_id(call, record, "run_id");
    }
}

static apr_status_t create(const char **body, const char **changed,
                           agent_call_t *call,
                           const agent_run_creation_t *creation,
                           bool is_stateless)
{
    char cursor[CURSOR_SIZE];
    const char *before = NULL;
    apr_pool_t *scratch;
    apr_status_t rv;

    *changed = NULL;
    if (is_stateless) {
        return agent_run_create_stateless(body, call->db, creation, &call->err,
                                          call->pool);
    }
    apr_pool_create(&scratch, call->pool);
    for (;;) {
        apr_pool_clear(scratch);
        rv = agent_run_create(body, changed, call->db, creation, before,
                              &call->err, scratch);
        if (!APR_STATUS_IS_EAGAIN(rv)) {
            return rv;
        }
        agent_wake_cancel(call->child->wake_fd, call->ref.deployment_id,
                          *changed);
        apr_cpystrn(cursor, *body, sizeof(cursor));
        before = cursor;
    }
}

/* suffix: as in agent_response_set_run_location(); NULL for a request that does
 * not wait for the run. */
static apr_status_t make(const char **body, agent_call_t *call,
                         const char *suffix)
{
    bool is_stateless = call->ref.thread_id == NULL;
    agent_run_creation_t creation = {0};
    const char *changed;

    if (read_creation(&creation, suffix != NULL, call) != APR_SUCCESS
        || create(body, &changed, call, &creation, is_stateless)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    set_ref(call, &creation, *body);
    agent_wake_ready(call->child->wake_fd, call->ref.deployment_id, changed);
    agent_response_set_run_location(call,
                                    is_stateless ? NULL : call->ref.thread_id,
                                    call->ref.run_id, suffix);
    return APR_SUCCESS;
}

apr_status_t agent_creation_make(const char **body, agent_call_t *call)
{
    return make(body, call, NULL);
}

apr_status_t agent_creation_check_room(agent_call_t *call, bool is_stream)
{
    const agent_parking_t parking = {.registry = call->child->waiters,
                                     .deployment_id = call->ref.deployment_id,
                                     .account = agent_requester_account(call),
                                     .is_stream = is_stream};

    return agent_park_check(call->r, &parking, &call->err);
}

apr_status_t agent_creation_make_awaited(agent_call_t *call, const char *suffix)
{
    bool is_stream = strcmp(suffix, "/stream") == 0;
    const char *body;

    return agent_creation_check_room(call, is_stream) == APR_SUCCESS
        ? make(&body, call, suffix)
        : APR_EGENERAL;
}
