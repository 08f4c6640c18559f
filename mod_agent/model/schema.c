/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of request bodies, as tables; see schema.h. */
#include "schema.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/egress.h"
#include "../core/uuid.h"

typedef struct check_t check_t;

/* What is being checked and where it stands. */
typedef struct place_t {
    const char *pointer;
    agent_error_t **err;
    apr_pool_t *pool;
} place_t;

struct check_t {
    const char *key;
    bool required;
    apr_status_t (*check)(const check_t *check, json_object *value,
                          const place_t *place);
    /* Words of a choice; members of an object. */
    const char *const *words;
    const check_t *members;
    double low;
    double high;
};

static const char *const strategies[] = {"reject", "interrupt", "rollback",
                                         "enqueue", NULL};
const char *const agent_stream_modes[] = {
    "values",  "messages", "messages-tuple", "tasks",  "checkpoints",
    "updates", "events",   "debug",          "custom", NULL};
const char *const agent_thread_stream_modes[] = {"run_modes", "lifecycle",
                                                 "state_update", NULL};
static const char *const if_not_exists[] = {"reject", "create", NULL};
static const char *const cancel_statuses[] = {"pending", "running", "all",
                                              NULL};
static const char *const durabilities[] = {"async", "sync", "exit", NULL};
static const char *const disconnects[] = {"continue", "cancel", NULL};
static const char *const completions[] = {"delete", "keep", NULL};

const char *const agent_if_exists[] = {"raise", "do_nothing", NULL};
const char *const agent_cancel_actions[] = {"interrupt", "rollback", NULL};
const char *const agent_run_statuses[] = {
    "pending", "running", "success", "error", "timeout", "interrupted", NULL};
const char *const agent_run_fields[] = {
    "run_id", "thread_id", "assistant_id", "created_at",         "updated_at",
    "status", "metadata",  "kwargs",       "multitask_strategy", NULL};

bool agent_schema_is_word(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

const char *agent_schema_print_words(const char *const *words, apr_pool_t *pool)
{
    const char *text = words[0];

    for (int i = 1; words[i] != NULL; i++) {
        text = apr_pstrcat(pool, text, words[i + 1] ? ", " : " or ", words[i],
                           NULL);
    }
    return text;
}

static apr_status_t refuse(const place_t *place, const char *expected)
{
    return agent_error_setf(place->err, AGENT_E_INVALID, place->pool,
                            "%s: expected %s.",
                            *place->pointer ? place->pointer : "/", expected);
}

static place_t place_below(const place_t *place, const char *key)
{
    place_t below = *place;

    below.pointer = apr_pstrcat(place->pool, place->pointer, "/", key, NULL);
    return below;
}

static place_t place_at(const place_t *place, size_t index)
{
    return place_below(place,
                       apr_psprintf(place->pool, "%" APR_SIZE_T_FMT, index));
}

static apr_status_t check_members(const check_t *members, json_object *object,
                                  const place_t *place)
{
    for (; members->key != NULL; members++) {
        json_object *value = agent_json_get(object, members->key);
        place_t below = place_below(place, members->key);
        apr_status_t rv = APR_SUCCESS;

        if (value != NULL) {
            rv = members->check(members, value, &below);
        }
        else if (members->required) {
            rv = refuse(&below, "a value: it is required");
        }
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

static apr_status_t check_any(const check_t *check, json_object *value,
                              const place_t *place)
{
    return APR_SUCCESS;
}

static apr_status_t check_object(const check_t *check, json_object *value,
                                 const place_t *place)
{
    if (!json_object_is_type(value, json_type_object)) {
        return refuse(place, "an object");
    }
    return check->members ? check_members(check->members, value, place)
                          : APR_SUCCESS;
}

static apr_status_t check_text(const check_t *check, json_object *value,
                               const place_t *place)
{
    int length = json_object_is_type(value, json_type_string)
        ? json_object_get_string_len(value)
        : -1;

    if (length < (int)check->low || length > (int)check->high) {
        return refuse(place,
                      apr_psprintf(place->pool, "a string of %d to %d bytes",
                                   (int)check->low, (int)check->high));
    }
    return APR_SUCCESS;
}

static apr_status_t check_uuid(const check_t *check, json_object *value,
                               const place_t *place)
{
    char id[AGENT_UUID_SIZE];

    if (!json_object_is_type(value, json_type_string)
        || !agent_uuid_parse(id, json_object_get_string(value))) {
        return refuse(place, "a UUID");
    }
    return APR_SUCCESS;
}

static apr_status_t check_flag(const check_t *check, json_object *value,
                               const place_t *place)
{
    return json_object_is_type(value, json_type_boolean)
        ? APR_SUCCESS
        : refuse(place, "true or false");
}

static apr_status_t check_number(const check_t *check, json_object *value,
                                 const place_t *place)
{
    double number = json_object_get_double(value);

    if ((!json_object_is_type(value, json_type_int)
         && !json_object_is_type(value, json_type_double))
        || !(number >= check->low && number <= check->high)) {
        return refuse(place,
                      apr_psprintf(place->pool, "a number from %.0f to %.0f",
                                   check->low, check->high));
    }
    return APR_SUCCESS;
}

static apr_status_t check_integer(const check_t *check, json_object *value,
                                  const place_t *place)
{
    if (!json_object_is_type(value, json_type_int)) {
        return refuse(place, "a whole number");
    }
    return check_number(check, value, place);
}

static apr_status_t check_word(const check_t *check, json_object *value,
                               const place_t *place)
{
    if (!json_object_is_type(value, json_type_string)
        || !agent_schema_is_word(json_object_get_string(value), check->words)) {
        return refuse(place,
                      agent_schema_print_words(check->words, place->pool));
    }
    return APR_SUCCESS;
}

static apr_status_t check_url(const check_t *check, json_object *value,
                              const place_t *place)
{
    agent_egress_target_t target;
    const char *expected;

    if (!json_object_is_type(value, json_type_string)) {
        return refuse(place, "a URL");
    }
    expected = agent_egress_read_url(&target, json_object_get_string(value),
                                     place->pool);
    return expected ? refuse(place, expected) : APR_SUCCESS;
}

/* One word, or an array of them: the React hook sends an empty one where a page
 * looks at no event. */
static apr_status_t check_words(const check_t *check, json_object *value,
                                const place_t *place)
{
    size_t length;

    if (!json_object_is_type(value, json_type_array)) {
        return check_word(check, value, place);
    }
    length = json_object_array_length(value);
    if (length > 64) {
        return refuse(place, "at most 64 elements");
    }
    for (size_t i = 0; i < length; i++) {
        place_t below = place_at(place, i);
        apr_status_t rv = check_word(check, json_object_array_get_idx(value, i),
                                     &below);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

static apr_status_t check_texts(const check_t *check, json_object *value,
                                const place_t *place)
{
    size_t length;

    if (!json_object_is_type(value, json_type_array)) {
        return refuse(place, "an array of strings");
    }
    length = json_object_array_length(value);
    for (size_t i = 0; i < length; i++) {
        if (!json_object_is_type(json_object_array_get_idx(value, i),
                                 json_type_string)) {
            place_t below = place_at(place, i);

            return refuse(&below, "a string");
        }
    }
    return APR_SUCCESS;
}

/* Each becomes part of an address. */
static apr_status_t check_keys(const check_t *check, json_object *value,
                               const place_t *place)
{
    apr_status_t rv = check_texts(check, value, place);

    if (rv == APR_SUCCESS && json_object_array_length(value) > 64) {
        return refuse(place, "at most 64 strings");
    }
    for (size_t i = 0; rv == APR_SUCCESS && i < json_object_array_length(value);
         i++) {
        int length = json_object_get_string_len(
            json_object_array_get_idx(value, i));

        if (length == 0 || length > 64) {
            rv = refuse(place, "strings of 1 to 64 bytes");
        }
    }
    return rv;
}

static apr_status_t check_uuids(const check_t *check, json_object *value,
                                const place_t *place)
{
    size_t length = json_object_is_type(value, json_type_array)
        ? json_object_array_length(value)
        : 0;

    if (length == 0 || length > AGENT_MANY_RUNS) {
        return refuse(place, "an array of 1 to 1000 UUIDs");
    }
    for (size_t i = 0; i < length; i++) {
        place_t below = place_at(place, i);
        apr_status_t rv = check_uuid(check, json_object_array_get_idx(value, i),
                                     &below);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

static apr_status_t check_nodes(const check_t *check, json_object *value,
                                const place_t *place)
{
    if (json_object_is_type(value, json_type_string)) {
        return strcmp(json_object_get_string(value), "*") == 0
            ? APR_SUCCESS
            : refuse(place, "\"*\" or an array of strings");
    }
    return check_texts(check, value, place);
}

static apr_status_t check_metadata(const check_t *check, json_object *value,
                                   const place_t *place)
{
    if (!json_object_is_type(value, json_type_object)) {
        return refuse(place, "an object");
    }
    if (json_object_object_length(value) > AGENT_METADATA_KEYS) {
        return refuse(place, "at most 64 keys");
    }
    json_object_object_foreach(value, key, member)
    {
        size_t length = 0;

        if (*key == '\0' || strlen(key) > AGENT_METADATA_KEY_BYTES) {
            return refuse(place, "keys of 1 to 64 bytes");
        }
        json_object_to_json_string_length(
            member, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE,
            &length);
        if (length > AGENT_METADATA_VALUE_BYTES) {
            place_t below = place_below(place, key);

            return refuse(&below, "at most 512 bytes of JSON");
        }
    }
    return APR_SUCCESS;
}

static const check_t config_members[] = {
    {.key = "tags", .check = check_texts},
    {.key = "recursion_limit", .check = check_integer, .low = 1, .high = 10007},
    {.key = "configurable", .check = check_object},
    {.key = "metadata", .check = check_metadata},
    {.key = NULL}};

static const check_t checkpoint_members[] = {
    {.key = "checkpoint_id", .check = check_uuid},
    {.key = "checkpoint_ns", .check = check_text, .low = 0, .high = 4096},
    {.key = NULL}};

static const check_t run_members[] = {
    {.key = "assistant_id",
     .required = true,
     .check = check_text,
     .low = 1,
     .high = 64},
    {.key = "input", .check = check_any},
    {.key = "command", .check = check_object},
    {.key = "multitask_strategy", .check = check_word, .words = strategies},
    {.key = "metadata", .check = check_metadata},
    {.key = "config", .check = check_object, .members = config_members},
    {.key = "context", .check = check_object},
    {.key = "webhook", .check = check_url},
    {.key = "interrupt_before", .check = check_nodes},
    {.key = "interrupt_after", .check = check_nodes},
    {.key = "stream_mode", .check = check_words, .words = agent_stream_modes},
    {.key = "stream_subgraphs", .check = check_flag},
    {.key = "stream_resumable", .check = check_flag},
    {.key = "checkpoint_during", .check = check_flag},
    {.key = "feedback_keys", .check = check_keys},
    {.key = "if_not_exists", .check = check_word, .words = if_not_exists},
    {.key = "on_disconnect", .check = check_word, .words = disconnects},
    {.key = "on_completion", .check = check_word, .words = completions},
    {.key = "durability", .check = check_word, .words = durabilities},
    {.key = "after_seconds", .check = check_number, .low = 0, .high = 31536000},
    {.key = "checkpoint_id", .check = check_uuid},
    {.key = "checkpoint", .check = check_object, .members = checkpoint_members},
    {.key = NULL}};

static const check_t thread_members[] = {
    {.key = "thread_id", .check = check_uuid},
    {.key = "metadata", .check = check_metadata},
    {.key = "if_exists", .check = check_word, .words = agent_if_exists},
    {.key = NULL}};

static const check_t cancel_members[] = {
    {.key = "status", .check = check_word, .words = cancel_statuses},
    {.key = "thread_id", .check = check_uuid},
    {.key = "run_ids", .check = check_uuids},
    {.key = NULL}};

static apr_status_t check_body(const check_t *members, json_object *body,
                               const place_t *place)
{
    if (!json_object_is_type(body, json_type_object)) {
        return refuse(place, "an object");
    }
    return check_members(members, body, place);
}

apr_status_t agent_schema_thread(json_object *body, agent_error_t **err,
                                 apr_pool_t *pool)
{
    place_t place = {"", err, pool};

    return check_body(thread_members, body, &place);
}

static apr_status_t check_run(json_object *body, const place_t *place)
{
    apr_status_t rv = check_body(run_members, body, place);

    if (rv == APR_SUCCESS && agent_json_get(body, "input") != NULL
        && agent_json_get(body, "command") != NULL) {
        place_t command = place_below(place, "command");

        return refuse(&command, "no input beside it");
    }
    return rv;
}

apr_status_t agent_schema_run(json_object *body, agent_error_t **err,
                              apr_pool_t *pool)
{
    place_t place = {"", err, pool};

    return check_run(body, &place);
}

apr_status_t agent_schema_runs(json_object *body, agent_error_t **err,
                               apr_pool_t *pool)
{
    place_t place = {"", err, pool};
    size_t length = json_object_is_type(body, json_type_array)
        ? json_object_array_length(body)
        : 0;

    if (length == 0 || length > AGENT_MANY_RUNS) {
        return refuse(&place, "an array of 1 to 1000 runs");
    }
    for (size_t i = 0; i < length; i++) {
        place_t below = place_at(&place, i);
        apr_status_t rv = check_run(json_object_array_get_idx(body, i), &below);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

apr_status_t agent_schema_cancel(json_object *body, agent_error_t **err,
                                 apr_pool_t *pool)
{
    place_t place = {"", err, pool};
    apr_status_t rv = check_body(cancel_members, body, &place);
    bool has_thread = agent_json_get(body, "thread_id") != NULL;
    bool has_runs = agent_json_get(body, "run_ids") != NULL;
    bool has_status = agent_json_get(body, "status") != NULL;

    if (rv == APR_SUCCESS
        && (has_thread != has_runs || has_runs == has_status)) {
        return refuse(&place, "either status, or thread_id and run_ids");
    }
    return rv;
}
