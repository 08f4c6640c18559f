/* SPDX-License-Identifier: Apache-2.0 */
/* Completing a conversation for the vendors. */
#include "history.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "core/json.h"
#include "message.h"
#include "runners/builtin/base/value.h"

#define NO_ANSWER "The run was interrupted before this tool answered."

static bool is_word_character(char c)
{
    return apr_isalnum(c) || c == '_' || c == '-';
}

const char *runner_history_word(const char *text, apr_pool_t *pool)
{
    char *word = apr_pstrdup(pool, *text ? text : "_");

    for (char *c = word; *c != '\0'; c++) {
        if (!is_word_character(*c)) {
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

static size_t count_list(json_object *list)
{
    return json_object_is_type(list, json_type_array)
        ? json_object_array_length(list)
        : 0;
}

void runner_history_calls(json_object *message,
                          void (*add)(void *baton, const char *id,
                                      const char *name, json_object *args),
                          void *baton, apr_pool_t *pool)
{
    static const char *const keys[] = {"tool_calls", "invalid_tool_calls"};
    json_object *empty = agent_json_own(json_object_new_object(), pool);

    for (int k = 0; k < 2; k++) {
        json_object *calls = agent_json_get(message, keys[k]);

        for (size_t i = 0; i < count_list(calls); i++) {
            json_object *call = json_object_array_get_idx(calls, i);
            json_object *args = agent_json_get(call, "args");

            add(baton,
                runner_history_word(agent_json_string(call, "id", ""), pool),
                runner_history_word(agent_json_string(call, "name", ""), pool),
                json_object_is_type(args, json_type_object) ? args : empty);
        }
    }
}

typedef struct completion_t {
    json_object *out;
    /* The ids of one message's calls that have an answer. */
    apr_hash_t *answered;
} completion_t;

static void mark_answered(completion_t *completion, const char *id)
{
    apr_hash_set(completion->answered, id, APR_HASH_KEY_STRING, id);
}

static void answer_call(void *baton, const char *id, const char *name,
                        json_object *args)
{
    completion_t *completion = baton;

    if (apr_hash_get(completion->answered, id, APR_HASH_KEY_STRING) == NULL) {
        json_object_array_add(
            completion->out,
            runner_message_tool(id, name, NO_ANSWER, NULL, true));
        mark_answered(completion, id);
    }
}

/* Adds the answers at i and the missing ones; returns the index after them. */
static size_t add_answers(completion_t *completion, json_object *messages,
                          size_t i, json_object *asking, apr_pool_t *scratch)
{
    completion->answered = apr_hash_make(scratch);
    for (; i < count_list(messages); i++) {
        json_object *message = json_object_array_get_idx(messages, i);

        if (!runner_message_is(message, "tool")) {
            break;
        }
        json_object_array_add(completion->out, runner_value_share(message));
        mark_answered(
            completion,
            runner_history_word(agent_json_string(message, "tool_call_id", ""),
                                scratch));
    }
    runner_history_calls(asking, answer_call, completion, scratch);
    return i;
}

json_object *runner_history_complete(json_object *messages, apr_pool_t *pool)
{
    completion_t completion = {agent_json_own(runner_value_list(), pool), NULL};
    apr_pool_t *scratch;
    size_t i = 0;

    apr_pool_create(&scratch, pool);
    while (i < count_list(messages)) {
        json_object *message = json_object_array_get_idx(messages, i++);

        json_object_array_add(completion.out, runner_value_share(message));
        if (runner_message_is(message, "ai")) {
            i = add_answers(&completion, messages, i, message, scratch);
            apr_pool_clear(scratch);
        }
    }
    apr_pool_destroy(scratch);
    return completion.out;
}
