/* SPDX-License-Identifier: Apache-2.0 */
/* Adding missing results, and names that the vendors allow. */
#include "history.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "core/json.h"
#include "message.h"
#include "runners/builtin/base/value.h"
#include "lazy.h"

#define NO_RESULT "The run was interrupted before this tool answered."

static bool is_name_character(char c)
{
    return apr_isalnum(c) || c == '_' || c == '-';
}

const char *runner_history_make_name(const char *text, apr_pool_t *pool)
{
    char *word = apr_pstrdup(pool, *text ? text : "_");

    for (char *c = word; *c != '\0'; c++) {
        if (!is_name_character(*c)) {
            *c = '_';
        }
    }
    return word;
}

bool runner_history_has_text(const char *text)
{
    while (apr_isspace(*text)) {
        text++;
    }
    return *text != '\0';
}

void runner_history_visit_calls(json_object *message,
                                void (*add)(void *baton, const char *id,
                                            const char *name,
                                            json_object *args),
                                void *baton, apr_pool_t *pool)
{
    static const char *const keys[] = {"tool_calls", "invalid_tool_calls"};
    json_object *empty = agent_json_own(json_object_new_object(), pool);

    for (int k = 0; k < 2; k++) {
        json_object *calls = agent_json_get(message, keys[k]);

        for (size_t i = 0; i < runner_value_count(calls); i++) {
            json_object *call = json_object_array_get_idx(calls, i);
            json_object *args = agent_json_get(call, "args");

            add(baton,
                runner_history_make_name(agent_json_string(call, "id", ""),
                                         pool),
                runner_history_make_name(agent_json_string(call, "name", ""),
                                         pool),
                json_object_is_type(args, json_type_object) ? args : empty);
        }
    }
}

typedef struct results_t {
    json_object *out;
    /* The ids of one message's calls that have a result. */
    apr_hash_t *answered;
} results_t;

static void mark_answered(results_t *results, const char *id)
{
    apr_hash_set(results->answered, id, APR_HASH_KEY_STRING, id);
}

static void add_missing(void *baton, const char *id, const char *name,
                        json_object *args)
{
    results_t *results = baton;

    if (apr_hash_get(results->answered, id, APR_HASH_KEY_STRING) == NULL) {
        json_object_array_add(
            results->out,
            runner_message_new_tool(id, name, NO_RESULT, NULL, true));
        mark_answered(results, id);
    }
}

/* Adds the results at index i, then the missing ones; returns the index after
 * those that were there. */
static size_t copy_results(results_t *results, json_object *messages, size_t i,
                           json_object *caller, apr_pool_t *scratch)
{
    results->answered = apr_hash_make(scratch);
    for (; i < runner_value_count(messages); i++) {
        json_object *message = runner_lazy_open(
            json_object_array_get_idx(messages, i), scratch);

        if (!runner_message_is(message, "tool")) {
            break;
        }
        json_object_array_add(results->out, runner_value_share(message));
        mark_answered(
            results,
            runner_history_make_name(
                agent_json_string(message, "tool_call_id", ""), scratch));
    }
    runner_history_visit_calls(caller, add_missing, results, scratch);
    return i;
}

json_object *runner_history_add_results(json_object *messages, apr_pool_t *pool)
{
    results_t results = {agent_json_own(runner_value_list(), pool), NULL};
    apr_pool_t *scratch;
    size_t i = 0;

    apr_pool_create(&scratch, pool);
    while (i < runner_value_count(messages)) {
        json_object *message = runner_lazy_open(
            json_object_array_get_idx(messages, i++), scratch);

        json_object_array_add(results.out, runner_value_share(message));
        if (runner_message_is(message, "ai")) {
            i = copy_results(&results, messages, i, message, scratch);
            apr_pool_clear(scratch);
        }
    }
    apr_pool_destroy(scratch);
    return results.out;
}
