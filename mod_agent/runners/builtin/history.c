/* SPDX-License-Identifier: Apache-2.0 */
/* See history.h. */
#include "history.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "core/json.h"
#include "message.h"
#include "value.h"

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
    /* Index in out of the first message after the calls. */
    size_t answers;
    apr_pool_t *pool;
} completion_t;

static void answer_call(void *baton, const char *id, const char *name,
                        json_object *args)
{
    completion_t *completion = baton;

    for (size_t i = completion->answers; i < count_list(completion->out); i++) {
        json_object *message = json_object_array_get_idx(completion->out, i);
        const char *answered = agent_json_string(message, "tool_call_id", "");

        if (strcmp(runner_history_word(answered, completion->pool), id) == 0) {
            return;
        }
    }
    json_object_array_add(completion->out,
                          runner_message_tool(id, name, NO_ANSWER, NULL, true));
}

json_object *runner_history_complete(json_object *messages, apr_pool_t *pool)
{
    completion_t completion = {agent_json_own(runner_value_list(), pool), 0,
                               pool};
    size_t count = count_list(messages);
    size_t i = 0;

    while (i < count) {
        json_object *message = json_object_array_get_idx(messages, i++);

        json_object_array_add(completion.out, runner_value_share(message));
        if (!runner_message_is(message, "ai")) {
            continue;
        }
        completion.answers = count_list(completion.out);
        while (i < count
               && runner_message_is(json_object_array_get_idx(messages, i),
                                    "tool")) {
            json_object_array_add(
                completion.out,
                runner_value_share(json_object_array_get_idx(messages, i++)));
        }
        runner_history_calls(message, answer_call, &completion, pool);
    }
    return completion.out;
}
