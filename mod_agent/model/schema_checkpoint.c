/* SPDX-License-Identifier: Apache-2.0 */
/* The members of bodies that name a checkpoint, and updates of the state. */
#include "schema_private.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/uuid.h"

/* Most graphs from the root to a subgraph, and most bytes of their names
 * together. */
#define MAP_MEMBERS 64
#define MAP_BYTES   32768

apr_status_t agent_schema_check_map(const agent_check_t *check,
                                    agent_raw_t value,
                                    const agent_check_path_t *path)
{
    const char *at = value.text;
    apr_size_t bytes = 0;
    agent_check_path_t below;
    agent_member_t member;

    if (agent_raw_kind(value) != AGENT_RAW_OBJECT) {
        return agent_check_refuse(path, "an object");
    }
    for (int i = 0; agent_raw_member_next(&member, &at); i++) {
        agent_raw_t id = {member.value, member.value_length};
        agent_raw_t key = {member.key - 1, member.key_length + 2};
        apr_size_t length = agent_raw_string_length(key);

        bytes += length;
        if (i == MAP_MEMBERS || length > AGENT_NS_BYTES || bytes > MAP_BYTES) {
            return agent_check_refuse(path,
                                      "at most 64 members, whose names have at "
                                      "most 2048 bytes and 32768 together");
        }
        below = agent_check_path_below(path, agent_raw_string(key, path->pool));
        if (agent_check_uuid(check, id, &below) != APR_SUCCESS) {
            return APR_EGENERAL;
        }
    }
    return APR_SUCCESS;
}

/* Members of a checkpoint, which may be one of a subgraph. */
const agent_check_t agent_schema_checkpoint_members[] = {
    {.key = "thread_id", .check = agent_check_uuid},
    {.key = "checkpoint_id", .check = agent_check_uuid},
    {.key = "checkpoint_ns", .check = agent_check_text, .high = AGENT_NS_BYTES},
    {.key = "checkpoint_map", .check = agent_schema_check_map},
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

static const agent_check_t state_at_members[] = {
    {.key = "checkpoint",
     .required = true,
     .check = agent_check_object,
     .members = agent_schema_checkpoint_members},
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
                                 const agent_check_path_t *path)
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
    {.key = "checkpoint",
     .check = agent_check_object,
     .members = agent_schema_checkpoint_members},
    {.key = "select", .check = agent_check_words, .words = agent_state_fields},
    {.key = NULL}};

/* The members that name the checkpoint to start from. */
enum { BY_ID, BY_CHECKPOINT, BY_CONFIG, NAMES };
static const char *const name_pointers[NAMES] = {"", "checkpoint/",
                                                 "config/configurable/"};

/* The parts of a name. */
enum { PART_ID, PART_NS, PART_MAP, PARTS };
static const char *const part_keys[PARTS] = {"checkpoint_id", "checkpoint_ns",
                                             "checkpoint_map"};

typedef struct checkpoint_names_t {
    agent_raw_t parts[NAMES][PARTS];
} checkpoint_names_t;

static bool is_empty(agent_raw_t part)
{
    const char *at = part.text;
    agent_member_t member;

    return agent_raw_kind(part) == AGENT_RAW_OBJECT
        ? !agent_raw_member_next(&member, &at)
        : agent_raw_string_length(part) == 0;
}

/* A part that has no value, or an empty one, is NONE. */
static void find_names(checkpoint_names_t *names, const agent_fields_t *fields)
{
    const agent_raw_t objects[NAMES] = {
        [BY_CHECKPOINT] = agent_field_raw(fields, "checkpoint"),
        [BY_CONFIG] = agent_raw_get(agent_field_raw(fields, "config"),
                                    "configurable")};

    *names = (checkpoint_names_t){0};
    names->parts[BY_ID][PART_ID] = agent_field_raw(fields, "checkpoint_id");
    for (int i = BY_CHECKPOINT; i < NAMES; i++) {
        for (int part = 0; part < PARTS; part++) {
            agent_raw_t value = agent_raw_get(objects[i], part_keys[part]);

            if (!is_empty(value)) {
                names->parts[i][part] = value;
            }
        }
    }
}

/* A pointer without its first slash. */
static const char *print_part(int name, int part, apr_pool_t *pool)
{
    return apr_pstrcat(pool, name_pointers[name], part_keys[part], NULL);
}

/* The content of a string, an id in lower case; the text of an object. */
static const char *read_part(agent_raw_t value, int part, apr_pool_t *pool)
{
    char id[AGENT_UUID_SIZE] = "";

    if (part == PART_MAP) {
        return apr_pstrmemdup(pool, value.text, value.length);
    }
    if (part == PART_ID) {
        agent_uuid_parse(id, agent_raw_string(value, pool));
        return apr_pstrdup(pool, id);
    }
    return agent_raw_string(value, pool);
}

/* The value of a part, the same in all names that have it; NULL for none. */
static apr_status_t find_part(const char **found,
                              const checkpoint_names_t *names, int part,
                              const agent_check_path_t *path)
{
    *found = NULL;
    for (int i = 0; i < NAMES; i++) {
        const char *value;

        if (names->parts[i][part].length == 0) {
            continue;
        }
        value = read_part(names->parts[i][part], part, path->pool);
        if (*found != NULL && strcmp(*found, value) != 0) {
            return agent_schema_refuse(
                path, print_part(i, part, path->pool),
                "the checkpoint that another member names");
        }
        *found = value;
    }
    return APR_SUCCESS;
}

apr_status_t agent_schema_check_checkpoints(const agent_fields_t *fields,
                                            const agent_check_path_t *path)
{
    checkpoint_names_t names;
    const char *parts[PARTS];
    char member[AGENT_UUID_SIZE];
    agent_raw_t mapped;

    find_names(&names, fields);
    for (int part = 0; part < PARTS; part++) {
        if (find_part(&parts[part], &names, part, path) != APR_SUCCESS) {
            return APR_EGENERAL;
        }
    }
    if (parts[PART_MAP] == NULL) {
        return APR_SUCCESS;
    }
    mapped = agent_raw_get(agent_raw_read(parts[PART_MAP]),
                           parts[PART_NS] != NULL ? parts[PART_NS] : "");
    if (mapped.length == 0 && parts[PART_ID] == NULL) {
        return agent_schema_refuse(path, "checkpoint_id",
                                   "the checkpoint beside checkpoint_map, "
                                   "which has none for its namespace");
    }
    if (mapped.length > 0 && parts[PART_ID] != NULL
        && agent_uuid_parse(member, agent_raw_string(mapped, path->pool))
        && strcmp(member, parts[PART_ID]) != 0) {
        return agent_schema_refuse(path, "checkpoint_id",
                                   "the checkpoint that checkpoint_map has for "
                                   "its namespace");
    }
    return APR_SUCCESS;
}

apr_status_t agent_schema_check_stateless(const agent_fields_t *run,
                                          const agent_check_path_t *path)
{
    checkpoint_names_t names;

    find_names(&names, run);
    for (int i = 0; i < NAMES * PARTS; i++) {
        if (names.parts[i / PARTS][i % PARTS].length > 0) {
            return agent_schema_refuse(
                path, print_part(i / PARTS, i % PARTS, path->pool),
                "none: a stateless run begins on a new thread");
        }
    }
    return APR_SUCCESS;
}

apr_status_t agent_schema_check_thread(const agent_fields_t *fields,
                                       const char *thread_id,
                                       const agent_check_path_t *path)
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
    agent_check_path_t path = {.err = err, .pool = pool};
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
    agent_check_path_t path = {.err = err, .pool = pool};
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
