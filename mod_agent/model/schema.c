/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of request bodies as tables of checks; see schema.h. */
#include "schema_private.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../core/uuid.h"
#include "../core/word.h"
#include "check.h"

const char *const agent_stream_modes[] = {
    "values", "messages", "messages-tuple", "tasks", "checkpoints", "updates",
    "events", "debug",    "custom",         "tools", "lifecycle",   NULL};
const char *const agent_thread_stream_modes[] = {"run_modes", "lifecycle",
                                                 "state_update", NULL};
static const char *const if_not_exists[] = {"reject", "create", NULL};
static const char *const cancel_statuses[] = {"pending", "running", "all",
                                              NULL};
static const char *const durabilities[] = {"async", "sync", "exit", NULL};
static const char *const disconnects[] = {"continue", "cancel", NULL};
static const char *const completions[] = {"delete", "keep", NULL};
static const char *const sort_orders[] = {"asc", "desc", NULL};
static const char *const assistant_orders[] = {
    "assistant_id", "created_at", "updated_at", "name", "graph_id", NULL};
static const char *const assistant_fields[] = {
    "assistant_id", "graph_id", "name",     "description",
    "config",       "context",  "metadata", "created_at",
    "updated_at",   "version",  NULL};
static const char *const prunings[] = {"delete", "keep_latest", NULL};
static const char *const thread_statuses[] = {"idle", "busy", "interrupted",
                                              "error", NULL};
static const char *const thread_orders[] = {"thread_id",        "status",
                                            "created_at",       "updated_at",
                                            "state_updated_at", NULL};
static const char *const thread_record_fields[] = {
    "thread_id", "created_at", "updated_at", "state_updated_at", "metadata",
    "config",    "status",     "values",     "interrupts",       NULL};

const char *const agent_if_exists[] = {"raise", "do_nothing", NULL};
const char *const agent_cancel_actions[] = {"interrupt", "rollback", NULL};
const char *const agent_run_statuses[] = {
    "pending", "running", "success", "error", "timeout", "interrupted", NULL};
const char *const agent_thread_fields[] = {"ttl", NULL};
const char *const agent_run_fields[] = {
    "run_id",        "thread_id",  "assistant_id",
    "created_at",    "updated_at", "status",
    "metadata",      "kwargs",     "multitask_strategy",
    "cancel_reason", NULL};

/* The server sets the other identifiers of configurable, whatever the request
 * has. */
static const agent_check_t configurable_members[] = {
    {.key = "checkpoint_id", .check = agent_check_uuid},
    {.key = "checkpoint_ns", .check = agent_check_text, .high = AGENT_NS_BYTES},
    {.key = "checkpoint_map", .check = agent_schema_check_map},
    {.key = NULL}};

/* The members of a config; table: those of its member configurable. */
#define CONFIG_MEMBERS(table)                                                  \
    {.key = "tags", .check = agent_check_texts},                               \
        {.key = "recursion_limit",                                             \
         .check = agent_check_integer,                                         \
         .low = 1,                                                             \
         .high = 10007},                                                       \
        {.key = "configurable",                                                \
         .check = agent_check_configurable,                                    \
         .members = (table)},                                                  \
    {                                                                          \
        .key = "metadata", .check = agent_check_metadata                       \
    }

static const agent_check_t config_members[] = {
    CONFIG_MEMBERS(configurable_members), {.key = NULL}};

static const agent_check_t run_members[] = {
    {.key = "assistant_id",
     .required = true,
     .check = agent_check_text,
     .low = 1,
     .high = 64},
    {.key = "input", .check = agent_check_any},
    {.key = "command", .check = agent_check_object},
    {.key = "multitask_strategy",
     .check = agent_check_word,
     .words = agent_word_strategies},
    {.key = "metadata", .check = agent_check_metadata},
    {.key = "config", .check = agent_check_object, .members = config_members},
    {.key = "context", .check = agent_check_object},
    {.key = "webhook", .check = agent_check_url},
    {.key = "interrupt_before", .check = agent_check_nodes},
    {.key = "interrupt_after", .check = agent_check_nodes},
    {.key = "stream_mode",
     .check = agent_check_words,
     .words = agent_stream_modes},
    {.key = "stream_subgraphs", .check = agent_check_flag},
    {.key = "stream_resumable", .check = agent_check_flag},
    {.key = "checkpoint_during", .check = agent_check_flag},
    {.key = "feedback_keys", .check = agent_check_keys},
    {.key = "if_not_exists", .check = agent_check_word, .words = if_not_exists},
    {.key = "on_disconnect", .check = agent_check_word, .words = disconnects},
    {.key = "on_completion", .check = agent_check_word, .words = completions},
    {.key = "durability", .check = agent_check_word, .words = durabilities},
    {.key = "after_seconds",
     .check = agent_check_number,
     .low = 0,
     .high = 31536000},
    {.key = "checkpoint_id", .check = agent_check_uuid},
    {.key = "checkpoint",
     .check = agent_check_object,
     .members = agent_schema_checkpoint_members},
    {.key = "strict_resume", .check = agent_check_flag},
    {.key = NULL}};

static const agent_check_t superstep_update_members[] = {
    {.key = "values", .check = agent_check_values},
    {.key = "command", .check = agent_check_object},
    {.key = "as_node", .check = agent_check_text, .low = 1, .high = 128},
    {.key = NULL}};

static const agent_check_t superstep_members[] = {
    {.key = "updates",
     .required = true,
     .check = agent_check_objects,
     .members = superstep_update_members,
     .low = 1,
     .high = AGENT_SUPERSTEPS},
    {.key = NULL}};

/* Official servers have keep_latest too. */
static apr_status_t check_ttl_strategy(const agent_check_t *check,
                                       agent_raw_t value,
                                       const agent_check_path_t *path)
{
    return agent_raw_equals(value, "delete")
        ? APR_SUCCESS
        : agent_check_refuse(path,
                             "delete: POST /threads/prune deletes all but the "
                             "latest state");
}

static const agent_check_t ttl_members[] = {
    {.key = "ttl", .check = agent_check_minutes},
    {.key = "strategy", .check = check_ttl_strategy},
    {.key = NULL}};

/* Minutes, or an object with them. */
static apr_status_t check_ttl(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path)
{
    static const agent_check_t object = {.members = ttl_members};

    if (agent_raw_kind(value) == AGENT_RAW_NUMBER) {
        return agent_check_minutes(check, value, path);
    }
    return agent_raw_kind(value) == AGENT_RAW_OBJECT
        ? agent_check_object(&object, value, path)
        : agent_check_refuse(path, "minutes, or an object with them as ttl");
}

static const agent_check_t thread_members[] = {
    {.key = "thread_id", .check = agent_check_uuid},
    {.key = "metadata", .check = agent_check_metadata},
    {.key = "if_exists", .check = agent_check_word, .words = agent_if_exists},
    {.key = "supersteps",
     .check = agent_check_objects,
     .members = superstep_members,
     .high = AGENT_SUPERSTEPS},
    {.key = "ttl", .check = check_ttl},
    {.key = NULL}};

static const agent_check_t thread_update_members[] = {
    {.key = "metadata", .check = agent_check_metadata},
    {.key = "ttl", .check = check_ttl},
    {.key = NULL}};

/* The server sets the identifiers of configurable for each run. */
static const agent_check_t assistant_configurable_members[] = {
    {.key = "checkpoint_id", .check = agent_check_unsupported},
    {.key = "checkpoint_ns", .check = agent_check_unsupported},
    {.key = "checkpoint_map", .check = agent_check_unsupported},
    {.key = NULL}};

static const agent_check_t assistant_config_members[] = {
    CONFIG_MEMBERS(assistant_configurable_members), {.key = NULL}};

/* An update has the same members; assistant_id and if_exists are unknown to it,
 * and graph_id is not required. */
static const agent_check_t assistant_members[] = {
    {.key = "graph_id", .check = agent_check_text, .low = 1, .high = 64},
    {.key = "name", .check = agent_check_text, .high = 512},
    {.key = "description", .check = agent_check_text, .high = 4096},
    {.key = "config",
     .check = agent_check_object,
     .members = assistant_config_members},
    {.key = "context", .check = agent_check_object},
    {.key = "metadata", .check = agent_check_metadata},
    {.key = NULL}};

static const agent_check_t new_assistant_members[] = {
    {.key = "assistant_id", .check = agent_check_uuid},
    {.key = "if_exists", .check = agent_check_word, .words = agent_if_exists},
    {.key = "graph_id", .required = true, .check = agent_check_any},
    {.key = NULL}};

static const agent_check_t version_members[] = {
    {.key = "version", .check = agent_check_integer, .low = 1, .high = INT_MAX},
    {.key = NULL}};

static const agent_check_t assistants_members[] = {
    {.key = "graph_id", .check = agent_check_text, .high = 64},
    {.key = "name", .check = agent_check_text, .high = 512},
    {.key = "metadata", .check = agent_check_filter},
    {.key = "limit", .check = agent_check_integer, .low = 1, .high = 1000},
    {.key = "offset",
     .check = agent_check_integer,
     .low = 0,
     .high = 2147480000},
    {.key = "sort_by", .check = agent_check_word, .words = assistant_orders},
    {.key = "sort_order", .check = agent_check_word, .words = sort_orders},
    {.key = "select", .check = agent_check_words, .words = assistant_fields},
    {.key = NULL}};

/* An object, or an array of objects. */
static apr_status_t check_excluded(const agent_check_t *check,
                                   agent_raw_t value,
                                   const agent_check_path_t *path)
{
    const char *at = value.text;
    agent_raw_t element;
    apr_status_t rv;

    if (agent_raw_kind(value) != AGENT_RAW_ARRAY) {
        return agent_check_filter(check, value, path);
    }
    rv = agent_check_objects(check, value, path);
    while (rv == APR_SUCCESS && agent_raw_element_next(&element, &at)) {
        rv = agent_check_filter(check, element, path);
    }
    return rv;
}

/* Also those of a count, which ignores `limit` and the members after it. */
static const agent_check_t threads_members[] = {
    {.key = "ids", .check = agent_check_uuids, .high = 1000},
    {.key = "metadata", .check = agent_check_filter},
    {.key = "exclude_metadata", .check = check_excluded, .low = 1, .high = 16},
    {.key = "status", .check = agent_check_word, .words = thread_statuses},
    {.key = "values", .check = agent_check_unsupported},
    {.key = "extract", .check = agent_check_unsupported},
    {.key = "limit", .check = agent_check_integer, .low = 1, .high = 1000},
    {.key = "offset",
     .check = agent_check_integer,
     .low = 0,
     .high = 2147480000},
    {.key = "sort_by", .check = agent_check_word, .words = thread_orders},
    {.key = "sort_order", .check = agent_check_word, .words = sort_orders},
    {.key = "select",
     .check = agent_check_words,
     .words = thread_record_fields},
    {.key = NULL}};

static const agent_check_t prune_members[] = {
    {.key = "thread_ids",
     .required = true,
     .check = agent_check_uuids,
     .high = 1000},
    {.key = "strategy", .check = agent_check_word, .words = prunings},
    {.key = NULL}};

static const agent_check_t cancel_members[] = {
    {.key = "status", .check = agent_check_word, .words = cancel_statuses},
    {.key = "thread_id", .check = agent_check_uuid},
    {.key = "run_ids", .check = agent_check_uuids, .high = AGENT_MANY_RUNS},
    {.key = NULL}};

static bool has_field(const agent_fields_t *fields, const char *key)
{
    return agent_field_raw(fields, key).length > 0;
}

apr_status_t agent_schema_assistants(const agent_fields_t **fields,
                                     agent_raw_t body, agent_error_t **err,
                                     apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};

    return agent_schema_check_body(fields, assistants_members, body, &path);
}

apr_status_t agent_schema_assistant(agent_raw_t body, agent_error_t **err,
                                    apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};
    const agent_fields_t *fields;

    return agent_schema_check_body(&fields, assistant_members, body, &path);
}

apr_status_t agent_schema_new_assistant(const agent_fields_t **fields,
                                        agent_raw_t body, agent_error_t **err,
                                        apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};
    apr_status_t rv = agent_schema_check_body(fields, new_assistant_members,
                                              body, &path);

    return rv == APR_SUCCESS ? agent_schema_assistant(body, err, pool) : rv;
}

apr_status_t agent_schema_version(int *version, agent_raw_t body,
                                  agent_error_t **err, apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};
    const agent_fields_t *fields;
    apr_status_t rv = agent_schema_check_body(&fields, version_members, body,
                                              &path);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (has_field(fields, "version")) {
        *version = (int)apr_atoi64(agent_field_raw(fields, "version").text);
    }
    return *version > 0
        ? APR_SUCCESS
        : agent_schema_refuse(&path, "version", "a value: it is required");
}

apr_status_t agent_schema_thread_update(agent_raw_t body, agent_error_t **err,
                                        apr_pool_t *pool)
{
    const agent_check_path_t path = {.err = err, .pool = pool};
    const agent_fields_t *fields;

    return agent_schema_check_body(&fields, thread_update_members, body, &path);
}

apr_status_t agent_schema_threads(agent_raw_t body, agent_error_t **err,
                                  apr_pool_t *pool)
{
    const agent_check_path_t path = {.err = err, .pool = pool};
    const agent_fields_t *fields;

    return agent_schema_check_body(&fields, threads_members, body, &path);
}

apr_status_t agent_schema_prune(const agent_fields_t **fields, agent_raw_t body,
                                agent_error_t **err, apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};

    return agent_schema_check_body(fields, prune_members, body, &path);
}

apr_status_t agent_schema_thread(const agent_fields_t **fields,
                                 agent_raw_t body, agent_error_t **err,
                                 apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};

    return agent_schema_check_body(fields, thread_members, body, &path);
}

/* checkpoint_during is the former name: true is async, false is exit. */
static apr_status_t check_durability(const agent_fields_t *run,
                                     const agent_check_path_t *path)
{
    agent_raw_t durability = agent_field_raw(run, "durability");
    agent_raw_t during = agent_field_raw(run, "checkpoint_during");

    if (durability.length > 0 && during.length > 0
        && agent_raw_equals(durability, "exit") == (*during.text == 't')) {
        return agent_schema_refuse(path, "checkpoint_during",
                                   "the same as durability says, or none");
    }
    return APR_SUCCESS;
}

static apr_status_t check_run(const agent_fields_t **fields, agent_raw_t body,
                              const agent_check_path_t *path)
{
    apr_status_t rv = agent_schema_check_body(fields, run_members, body, path);

    if (rv == APR_SUCCESS && has_field(*fields, "input")
        && has_field(*fields, "command")) {
        return agent_schema_refuse(path, "command", "no input beside it");
    }
    if (rv == APR_SUCCESS) {
        rv = check_durability(*fields, path);
    }
    return rv == APR_SUCCESS ? agent_schema_check_checkpoints(*fields, path)
                             : rv;
}

static apr_status_t check_on_thread(const agent_fields_t *run,
                                    const char *thread_id,
                                    const agent_check_path_t *path)
{
    if (agent_raw_equals(agent_field_raw(run, "on_completion"), "delete")) {
        return agent_schema_refuse(path, "on_completion",
                                   "keep: only threads of stateless runs are "
                                   "deleted");
    }
    return agent_schema_check_thread(run, thread_id, path);
}

apr_status_t agent_schema_endpoint(const agent_fields_t *run,
                                   const char *thread_id, bool is_awaited,
                                   agent_error_t **err, apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};

    if (!is_awaited
        && agent_raw_equals(agent_field_raw(run, "on_disconnect"), "cancel")) {
        return agent_schema_refuse(
            &path, "on_disconnect",
            "continue: the request does not wait for the "
            "run");
    }
    return thread_id != NULL ? check_on_thread(run, thread_id, &path)
                             : agent_schema_check_stateless(run, &path);
}

apr_status_t agent_schema_run(const agent_fields_t **fields, agent_raw_t body,
                              agent_error_t **err, apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};

    return check_run(fields, body, &path);
}

/* The number of elements of an array; counting stops after most + 1. */
static int count_elements(agent_raw_t array, int most)
{
    const char *at = array.text;
    agent_raw_t element;
    int count = 0;

    while (agent_raw_kind(array) == AGENT_RAW_ARRAY && count <= most
           && agent_raw_element_next(&element, &at)) {
        count++;
    }
    return count;
}

apr_status_t agent_schema_runs(const agent_fields_t *const **runs, int *count,
                               agent_raw_t body, agent_error_t **err,
                               apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};
    const char *at = body.text;
    const agent_fields_t **list;
    agent_raw_t run;

    *count = count_elements(body, AGENT_MANY_RUNS);
    if (*count == 0 || *count > AGENT_MANY_RUNS) {
        return agent_check_refuse(&path, "an array of 1 to 1000 runs");
    }
    list = apr_pcalloc(pool, (apr_size_t)*count * sizeof(void *));
    for (int i = 0; agent_raw_element_next(&run, &at); i++) {
        agent_check_path_t below = agent_check_path_at(&path, i);
        apr_status_t rv = check_run(&list[i], run, &below);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    *runs = list;
    return APR_SUCCESS;
}

apr_status_t agent_schema_cancel(const agent_fields_t **fields,
                                 agent_raw_t body, agent_error_t **err,
                                 apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};
    apr_status_t rv = agent_schema_check_body(fields, cancel_members, body,
                                              &path);
    bool has_runs;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    has_runs = has_field(*fields, "run_ids");
    if (has_field(*fields, "thread_id") != has_runs
        || has_runs == has_field(*fields, "status")) {
        return agent_check_refuse(&path,
                                  "either status, or thread_id and run_ids");
    }
    return APR_SUCCESS;
}
