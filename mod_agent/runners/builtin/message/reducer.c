/* SPDX-License-Identifier: Apache-2.0 */
/* Merging an update into the list of messages. */
#include "reducer.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_tables.h>

#include "core/json.h"
#include "message.h"
#include "read.h"
#include "runners/builtin/base/value.h"
#include "lazy.h"

#define REMOVE_ALL "__remove_all__"
/* The shortest message, text block and call as JSON, in bytes. */
#define MESSAGE_MIN 190
#define BLOCK_MIN   24
#define CALL_MIN    48

typedef struct merge_t {
    apr_pool_t *pool;
    /* Messages in order; NULL where one was removed. */
    apr_array_header_t *messages;
    /* id -> index in messages, plus one. */
    apr_hash_t *indexes;
    /* The bytes that the messages read so far have at least as JSON. */
    size_t size;
    /* The memory of the arguments of their calls, in bytes. */
    size_t weight;
} merge_t;

static const char *get_id(const merge_t *merge, json_object *message)
{
    return runner_lazy_string(message, "id", "", merge->pool);
}

static void append_message(merge_t *merge, json_object *message)
{
    APR_ARRAY_PUSH(merge->messages, json_object *) = message;
    apr_hash_set(merge->indexes, get_id(merge, message), APR_HASH_KEY_STRING,
                 (void *)(apr_uintptr_t)merge->messages->nelts);
}

static void clear_messages(merge_t *merge)
{
    apr_array_clear(merge->messages);
    apr_hash_clear(merge->indexes);
}

static apr_status_t apply_message(merge_t *merge, json_object *message,
                                  runner_problem_t **problem)
{
    const char *id = get_id(merge, message);
    bool is_remove = runner_message_is(message, "remove");
    apr_uintptr_t index;

    if (is_remove && strcmp(id, REMOVE_ALL) == 0) {
        clear_messages(merge);
        return APR_SUCCESS;
    }
    index = (apr_uintptr_t)apr_hash_get(merge->indexes, id,
                                        APR_HASH_KEY_STRING);
    if (index == 0 && is_remove) {
        return runner_problem_set(problem, merge->pool, RUNNER_INVALID_INPUT,
                                  "There is no message with the id \"%s\" to "
                                  "remove.",
                                  id);
    }
    if (index == 0) {
        append_message(merge, message);
        return APR_SUCCESS;
    }
    APR_ARRAY_IDX(merge->messages, index - 1,
                  json_object *) = is_remove ? NULL : message;
    return APR_SUCCESS;
}

/* The bytes that a message has at least as JSON once it has all fields. */
static size_t measure_message(json_object *given)
{
    return MESSAGE_MIN
        + BLOCK_MIN * runner_value_count(agent_json_get(given, "content"))
        + CALL_MIN * runner_value_count(agent_json_get(given, "tool_calls"));
}

/* The memory of the arguments of calls in OpenAI's form, which are strings of
 * JSON. */
static size_t weigh_arguments(json_object *given)
{
    json_object *calls = agent_json_get(given, "tool_calls");
    size_t weight = 0;

    for (size_t i = 0; i < runner_value_count(calls); i++) {
        json_object *function = agent_json_get(
            json_object_array_get_idx(calls, i), "function");
        const char *text = agent_json_string(function, "arguments", "");

        weight += runner_value_weigh(text, strlen(text));
    }
    return weight;
}

/* Converts a message; it belongs to the pool. The size is checked first, since
 * a message of two letters takes 3 KB of memory. */
static apr_status_t read_message(json_object **message, merge_t *merge,
                                 json_object *given, const char *where,
                                 runner_problem_t **problem)
{
    merge->size += measure_message(given);
    merge->weight += weigh_arguments(given);
    if (merge->size > RUNNER_REDUCER_MAX
        || merge->weight > RUNNER_VALUE_WEIGHT_MAX) {
        return runner_problem_set(problem, merge->pool, "StateTooLargeError",
                                  "%s: the messages up to here would have more "
                                  "than %d MiB in the state, or the arguments "
                                  "of their calls more than %d MiB of memory.",
                                  where, (int)(RUNNER_REDUCER_MAX >> 20),
                                  (int)(RUNNER_VALUE_WEIGHT_MAX >> 20));
    }
    if (runner_read_message(message, given, where, problem, merge->pool)
        != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    agent_json_own(*message, merge->pool);
    return APR_SUCCESS;
}

static bool is_complete(json_object *message)
{
    return runner_lazy_has_text(message, "type")
        && runner_lazy_has_text(message, "id");
}

bool runner_reducer_is_complete(json_object *list)
{
    size_t i = 0;

    while (i < runner_value_count(list)
           && is_complete(json_object_array_get_idx(list, i))) {
        i++;
    }
    return i == runner_value_count(list);
}

/* Messages of the state are kept unchanged; those that another graph stored
 * without an id or a type are converted. */
static apr_status_t load_list(merge_t *merge, json_object *list,
                              runner_problem_t **problem)
{
    /* Bounded: allocates forty bytes for a message of the state, and its id. */
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *message = json_object_array_get_idx(list, i);

        if (!is_complete(message)
            && read_message(
                   &message, merge, runner_lazy_open(message, merge->pool),
                   apr_psprintf(merge->pool,
                                "The state's messages/%" APR_SIZE_T_FMT, i),
                   problem)
                != APR_SUCCESS) {
            return APR_EGENERAL;
        }
        append_message(merge, message);
    }
    return APR_SUCCESS;
}

static apr_status_t apply_given(merge_t *merge, json_object *given,
                                const char *where, runner_problem_t **problem)
{
    json_object *message = NULL;

    if (read_message(&message, merge, given, where, problem) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    return apply_message(merge, message, problem);
}

static apr_status_t apply_update(merge_t *merge, json_object *update,
                                 runner_problem_t **problem)
{
    if (!json_object_is_type(update, json_type_array)) {
        return apply_given(merge, update, "messages", problem);
    }
    /* Bounded: allocates twenty bytes for a message. */
    for (size_t i = 0; i < json_object_array_length(update); i++) {
        const char *where = apr_psprintf(merge->pool,
                                         "messages/%" APR_SIZE_T_FMT, i);

        if (apply_given(merge, json_object_array_get_idx(update, i), where,
                        problem)
            != APR_SUCCESS) {
            return APR_EGENERAL;
        }
    }
    return APR_SUCCESS;
}

static merge_t *make_merge(apr_pool_t *pool)
{
    merge_t *merge = apr_pcalloc(pool, sizeof(*merge));

    merge->pool = pool;
    merge->messages = apr_array_make(pool, 16, sizeof(json_object *));
    merge->indexes = apr_hash_make(pool);
    return merge;
}

/* The messages that were not removed, as an array. */
static json_object *make_list(const merge_t *merge)
{
    json_object *list = runner_value_list();

    for (int i = 0; i < merge->messages->nelts; i++) {
        json_object *message = APR_ARRAY_IDX(merge->messages, i, json_object *);

        if (message != NULL) {
            json_object_array_add(list, runner_value_share(message));
        }
    }
    return list;
}

bool runner_reducer_only_appends(json_object *update)
{
    if (!json_object_is_type(update, json_type_array)) {
        return agent_json_get(update, "id") == NULL;
    }
    for (size_t i = 0; i < json_object_array_length(update); i++) {
        if (agent_json_get(json_object_array_get_idx(update, i), "id")
            != NULL) {
            return false;
        }
    }
    return true;
}

apr_status_t runner_reducer_read(json_object **added, json_object *update,
                                 runner_problem_t **problem, apr_pool_t *pool)
{
    merge_t *merge = make_merge(pool);

    if (apply_update(merge, update, problem) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    *added = make_list(merge);
    return APR_SUCCESS;
}

apr_status_t runner_reducer_apply(json_object **merged, json_object *list,
                                  json_object *update,
                                  runner_problem_t **problem, apr_pool_t *pool)
{
    merge_t *merge = make_merge(pool);

    if (list != NULL && load_list(merge, list, problem) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (apply_update(merge, update, problem) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    *merged = make_list(merge);
    return APR_SUCCESS;
}
