/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/message/ runners/builtin/base/clean.c */
/* OBJECTS: runners/builtin/base/raw.c runners/builtin/base/value.c */
/* OBJECTS: runners/builtin/base/text.c */
/* OBJECTS: runners/builtin/base/surrogates.c runners/builtin/base/problem.c */
/* OBJECTS: core/ */
/* The forms of messages that clients send, and the reducer. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/message.h"
#include "runners/builtin/message/read.h"
#include "runners/builtin/message/reducer.h"

static json_object *parse(const char *text, apr_pool_t *pool)
{
    json_object *value = runner_value_parse(text, strlen(text), pool);

    assert_non_null(value);
    return value;
}

/* The merged list; NULL and *refusal when the update was refused. */
static json_object *add(const char *list, const char *update,
                        const char **refusal, apr_pool_t *pool)
{
    runner_problem_t *problem = NULL;
    json_object *merged = NULL;

    *refusal = NULL;
    if (runner_reducer_apply(&merged, list ? parse(list, pool) : NULL,
                             parse(update, pool), &problem, pool)
        != APR_SUCCESS) {
        *refusal = problem->message;
        return NULL;
    }
    return agent_json_own(merged, pool);
}

/* "id:content id:content" of the merged list. */
static const char *ids_after(const char *list, const char *update,
                             apr_pool_t *pool)
{
    const char *refusal;
    json_object *merged = add(list, update, &refusal, pool);
    const char *text = "";

    assert_null(refusal);
    for (size_t i = 0; i < json_object_array_length(merged); i++) {
        json_object *message = json_object_array_get_idx(merged, i);

        text = apr_pstrcat(pool, text, i ? " " : "",
                           agent_json_string(message, "id", "?"), ":",
                           runner_message_text(message, pool), NULL);
    }
    return text;
}

#define OLD                                                                    \
    "[{\"type\":\"human\",\"id\":\"a\",\"content\":\"1\"},"                    \
    "{\"type\":\"ai\",\"id\":\"b\",\"content\":\"2\"}]"

static void new_messages_are_appended(void **state)
{
    assert_string_equal(
        ids_after(OLD, "[{\"role\":\"user\",\"id\":\"c\",\"content\":\"3\"}]",
                  *state),
        "a:1 b:2 c:3");
    assert_string_equal(
        ids_after(NULL, "{\"role\":\"user\",\"id\":\"c\",\"content\":\"3\"}",
                  *state),
        "c:3");
    assert_string_equal(ids_after(OLD, "[]", *state), "a:1 b:2");
}

static void a_message_with_a_known_id_replaces_the_other(void **state)
{
    assert_string_equal(
        ids_after(OLD,
                  "[{\"role\":\"user\",\"id\":\"a\",\"content\":\"x\"},"
                  "{\"role\":\"user\",\"id\":\"a\",\"content\":\"y\"}]",
                  *state),
        "a:y b:2");
}

static void messages_are_removed_by_id(void **state)
{
    assert_string_equal(
        ids_after(OLD, "[{\"type\":\"remove\",\"id\":\"a\"}]", *state), "b:2");
    assert_string_equal(
        ids_after(OLD,
                  "[{\"type\":\"remove\",\"id\":\"__remove_all__\"},"
                  "{\"role\":\"ai\",\"id\":\"c\",\"content\":\"3\"}]",
                  *state),
        "c:3");
    assert_string_equal(
        ids_after(OLD,
                  "[{\"type\":\"remove\",\"id\":\"a\"},"
                  "{\"role\":\"user\",\"id\":\"a\",\"content\":\"x\"}]",
                  *state),
        "a:x b:2");
}

static void removing_an_unknown_message_is_refused(void **state)
{
    const char *refusal;

    add(OLD, "[{\"type\":\"remove\",\"id\":\"z\"}]", &refusal, *state);
    assert_non_null(strstr(refusal, "\"z\""));
}

static void missing_ids_are_added_and_differ(void **state)
{
    const char *refusal;
    json_object *merged = add(NULL, "[\"x\",\"y\"]", &refusal, *state);
    const char *first = agent_json_string(json_object_array_get_idx(merged, 0),
                                          "id", "");
    const char *second = agent_json_string(json_object_array_get_idx(merged, 1),
                                           "id", "");

    assert_int_equal(strlen(first), 36);
    assert_string_not_equal(first, second);
}

static void a_refused_update_changes_nothing(void **state)
{
    const char *refusal;

    assert_null(
        add(OLD, "[\"fine\",{\"role\":\"martian\"}]", &refusal, *state));
    assert_non_null(strstr(refusal, "messages/1/role"));
    assert_non_null(strstr(refusal, "martian"));
}

static void a_message_has_all_fields_of_its_type_in_order(void **state)
{
    static const char *const rows[][2] = {
        {"{\"role\":\"user\",\"content\":\"x\",\"id\":\"1\"}",
         "{\"type\":\"human\",\"content\":\"x\",\"id\":\"1\",\"name\":null,"
         "\"additional_kwargs\":{},\"response_metadata\":{},"
         "\"example\":false}"},
        {"{\"role\":\"assistant\",\"content\":null,\"id\":\"1\"}",
         "{\"type\":\"ai\",\"content\":\"\",\"id\":\"1\",\"name\":null,"
         "\"additional_kwargs\":{},\"response_metadata\":{},"
         "\"example\":false,\"tool_calls\":[],\"invalid_tool_calls\":[],"
         "\"usage_metadata\":{\"input_tokens\":0,\"output_tokens\":0,"
         "\"total_tokens\":0}}"},
        {"{\"role\":\"tool\",\"content\":\"x\",\"id\":\"1\","
         "\"tool_call_id\":\"c\",\"odd\":[1]}",
         "{\"type\":\"tool\",\"content\":\"x\",\"id\":\"1\",\"name\":null,"
         "\"additional_kwargs\":{\"odd\":[1]},\"response_metadata\":{},"
         "\"example\":false,\"tool_call_id\":\"c\",\"artifact\":{},"
         "\"status\":\"success\"}"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        runner_problem_t *problem = NULL;
        json_object *message = NULL;

        assert_int_equal(runner_read_message(&message,
                                             parse(rows[i][0], *state), "x",
                                             &problem, *state),
                         APR_SUCCESS);
        agent_json_own(message, *state);
        assert_string_equal(agent_json_print(message, *state), rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(new_messages_are_appended),
        CHECK_TEST(a_message_with_a_known_id_replaces_the_other),
        CHECK_TEST(messages_are_removed_by_id),
        CHECK_TEST(removing_an_unknown_message_is_refused),
        CHECK_TEST(missing_ids_are_added_and_differ),
        CHECK_TEST(a_refused_update_changes_nothing),
        CHECK_TEST(a_message_has_all_fields_of_its_type_in_order),
    };

    return CHECK_RUN(tests);
}
