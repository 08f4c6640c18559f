/* SPDX-License-Identifier: Apache-2.0 */
/* The members of bodies that name a checkpoint, and updates of the state. */
#include "schema_private.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/uuid.h"

const agent_check_t agent_schema_checkpoint_members[] = {
    {.key = "thread_id", .check = agent_check_uuid},
    {.key = "checkpoint_id", .check = agent_check_uuid},
    {.key = "checkpoint_ns", .check = agent_check_unsupported},
    {.key = "checkpoint_map", .check = agent_check_unsupported},
    {.key = NULL}};

static const agent_check_t state_members[] = {
    {.key = "values", .check = agent_check_values},
    {.key = "as_node", .check = agent_check_text, .low = 1, .high = 128},
    {.key = "checkpoint_id", .check = agent_check_uuid},
    {.key = "checkpoint",
     .check = agent_check_object,
     .members = agent_schema_checkpoint_members},
    {.key = NULL}};

const char *const agent_state_fields[] = {"values",
                                          "next",
                                          "tasks",
                                          "metadata",
                                          "created_at",
                                          "checkpoint",
                                          "checkpoint_id",
                                          "interrupts",
                                          "parent_checkpoint",
                                          "parent_checkpoint_id",
                                          NULL};

/* Of a checkpoint to read, which may be one of a subgraph. */
static const agent_check_t read_members[] = {
    {.key = "thread_id", .check = agent_check_uuid},
    {.key = "checkpoint_id", .check = agent_check_uuid},
    {.key = "checkpoint_ns", .check = agent_check_text, .high = 2048},
    {.key = "checkpoint_map", .check = agent_check_object},
    {.key = NULL}};

static const agent_check_t state_at_members[] = {
    {.key = "checkpoint",
     .required = true,
     .check = agent_check_object,
     .members = read_members},
    {.key = "subgraphs", .check = agent_check_flag},
    {.key = "select", .check = agent_check_words, .words = agent_state_fields},
    {.key = NULL}};

static const agent_check_t before_configurable[] = {
    {.key = "checkpoint_id", .check = agent_check_uuid}, {.key = NULL}};

static const agent_check_t before_members[] = {
    {.key = "checkpoint_id", .check = agent_check_uuid},
    {.key = "configurable",
     .check = agent_check_object,
     .members = before_configurable},
    {.key = NULL}};

/* Accepts the id of a checkpoint, or an object that names one. */
static apr_status_t check_before(const agent_check_t *check, agent_raw_t value,
                                 const agent_json_path_t *path)
{
    const agent_check_t object = {.members = before_members};

    return agent_raw_kind(value) == AGENT_RAW_STRING
        ? agent_check_uuid(check, value, path)
        : agent_check_object(&object, value, path);
}

static const agent_check_t history_members[] = {
    {.key = "limit", .check = agent_check_integer, .low = 1, .high = 1000},
    {.key = "before", .check = check_before},
    {.key = "metadata", .check = agent_check_metadata},
    {.key = "checkpoint", .check = agent_check_object, .members = read_members},
    {.key = "select", .check = agent_check_words, .words = agent_state_fields},
    {.key = NULL}};

/* The members that name the checkpoint to start from. */
static const char *const checkpoint_pointers[] = {
    "checkpoint_id", "checkpoint/checkpoint_id",
    "config/configurable/checkpoint_id"};

#define CHECKPOINT_POINTERS 3

static void find_checkpoints(agent_raw_t ids[CHECKPOINT_POINTERS],
                             const agent_fields_t *run)
{
    agent_raw_t config = agent_field_raw(run, "config");

    ids[0] = agent_field_raw(run, "checkpoint_id");
    ids[1] = agent_raw_get(agent_field_raw(run, "checkpoint"), "checkpoint_id");
    ids[2] = agent_raw_get(agent_raw_get(config, "configurable"),
                           "checkpoint_id");
}

apr_status_t agent_schema_check_checkpoints(const agent_fields_t *fields,
                                            const agent_json_path_t *path)
{
    char first[AGENT_UUID_SIZE] = "";
    char id[AGENT_UUID_SIZE];
    agent_raw_t ids[CHECKPOINT_POINTERS];

    find_checkpoints(ids, fields);
    for (int i = 0; i < CHECKPOINT_POINTERS; i++) {
        if (agent_raw_kind(ids[i]) != AGENT_RAW_STRING) {
            continue;
        }
        agent_uuid_parse(id, agent_raw_string(ids[i], path->pool));
        if (first[0] != '\0' && strcmp(first, id) != 0) {
            return agent_schema_refuse(
                path, checkpoint_pointers[i],
                "the checkpoint that another member names");
        }
        apr_cpystrn(first, id, sizeof(first));
    }
    return APR_SUCCESS;
}

apr_status_t agent_schema_check_stateless(const agent_fields_t *run,
                                          const agent_json_path_t *path)
{
    agent_raw_t ids[CHECKPOINT_POINTERS];

    find_checkpoints(ids, run);
    for (int i = 0; i < CHECKPOINT_POINTERS; i++) {
        if (agent_raw_kind(ids[i]) == AGENT_RAW_STRING) {
            return agent_schema_refuse(path, checkpoint_pointers[i],
                                       "none: a stateless run begins on a new "
                                       "thread");
        }
    }
    return APR_SUCCESS;
}

apr_status_t agent_schema_check_thread(const agent_fields_t *fields,
                                       const char *thread_id,
                                       const agent_json_path_t *path)
{
    const char *asked = agent_raw_string(
        agent_raw_get(agent_field_raw(fields, "checkpoint"), "thread_id"),
        path->pool);

    return asked == NULL || strcasecmp(asked, thread_id) == 0
        ? APR_SUCCESS
        : agent_schema_refuse(path, "checkpoint/thread_id",
                              "the thread of the path");
}

apr_status_t agent_schema_state(agent_raw_t body, const char *thread_id,
                                agent_error_t **err, apr_pool_t *pool)
{
    agent_json_path_t path = {.err = err, .pool = pool};
    const agent_fields_t *fields;
    apr_status_t rv = agent_schema_check_body(&fields, state_members, body,
                                              &path);

    if (rv == APR_SUCCESS) {
        rv = agent_schema_check_checkpoints(fields, &path);
    }
    return rv == APR_SUCCESS
        ? agent_schema_check_thread(fields, thread_id, &path)
        : rv;
}

/* Checks a body that names a checkpoint to read. */
static apr_status_t check_reading(const agent_check_t *members,
                                  agent_raw_t body, const char *thread_id,
                                  agent_error_t **err, apr_pool_t *pool)
{
    agent_json_path_t path = {.err = err, .pool = pool};
    const agent_fields_t *fields;
    apr_status_t rv = agent_schema_check_body(&fields, members, body, &path);

    return rv == APR_SUCCESS
        ? agent_schema_check_thread(fields, thread_id, &path)
        : rv;
}

apr_status_t agent_schema_state_at(agent_raw_t body, const char *thread_id,
                                   agent_error_t **err, apr_pool_t *pool)
{
    return check_reading(state_at_members, body, thread_id, err, pool);
}

apr_status_t agent_schema_history(agent_raw_t body, const char *thread_id,
                                  agent_error_t **err, apr_pool_t *pool)
{
    return check_reading(history_members, body, thread_id, err, pool);
}
