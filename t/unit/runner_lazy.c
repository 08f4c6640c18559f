/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/message/ runners/builtin/base/clean.c */
/* OBJECTS: runners/builtin/base/raw.c runners/builtin/base/value.c */
/* OBJECTS: runners/builtin/base/text.c */
/* OBJECTS: runners/builtin/base/surrogates.c runners/builtin/base/problem.c */
/* OBJECTS: core/ */
/* Messages of the state that stay text. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/history.h"
#include "runners/builtin/message/message.h"
#include "runners/builtin/message/reducer.h"
#include "runners/builtin/message/lazy.h"

#define TEXT                                                                   \
    "{\"type\": \"ai\",\"id\":\"one\", \"content\":\"a \\\"b\\\"\","           \
    "\"name\":null,\"x\":1.50}"
#define PRINTED                                                                \
    "{\"type\":\"ai\",\"id\":\"one\",\"content\":\"a \\\"b\\\"\","             \
    "\"name\":null,\"x\":1.50}"

static json_object *store(const char *text, apr_pool_t *pool)
{
    const char *end = text;
    json_object *message = agent_json_own(runner_lazy_read(&end), pool);

    assert_ptr_equal(end, text + strlen(text));
    return message;
}

static json_object *store_list(const char *const *texts, apr_pool_t *pool)
{
    json_object *list = agent_json_own(runner_value_list(), pool);

    for (; *texts != NULL; texts++) {
        const char *text = *texts;

        json_object_array_add(list, runner_lazy_read(&text));
    }
    return list;
}

/* The same of a message that is text, one that was opened, and a tree. */
static void check_members(json_object *message, apr_pool_t *pool)
{
    assert_true(runner_message_is(message, "ai"));
    assert_false(runner_message_is(message, "a"));
    assert_true(runner_lazy_equals(message, "id", "one"));
    assert_false(runner_lazy_equals(message, "none", ""));
    assert_true(runner_lazy_has_text(message, "id"));
    assert_false(runner_lazy_has_text(message, "name"));
    assert_false(runner_lazy_has_text(message, "x"));
    assert_false(runner_lazy_has_text(message, "none"));
    assert_string_equal(runner_lazy_string(message, "id", NULL, pool), "one");
    assert_null(runner_lazy_string(message, "x", NULL, pool));
    assert_null(runner_lazy_string(message, "none", NULL, pool));
    assert_string_equal(runner_lazy_string(message, "x", "", pool), "");
    assert_string_equal(runner_lazy_string(message, "none", "", pool), "");
    assert_string_equal(runner_message_text(message, pool), "a \"b\"");
}

static void members_of_text_are_those_of_its_tree(void **state)
{
    json_object *message = store(TEXT, *state);

    check_members(message, *state);
    assert_string_equal(runner_lazy_text(message).text, TEXT);
    runner_lazy_open(message, *state);
    check_members(message, *state);
    check_members(runner_value_parse(TEXT, strlen(TEXT), *state), *state);
}

static void a_message_is_printed_as_it_was_stored(void **state)
{
    json_object *message = store(TEXT, *state);
    json_object *list = agent_json_own(
        runner_value_list_of(runner_value_share(message)), *state);

    assert_string_equal(agent_json_print(list, *state), "[" TEXT "]");
    runner_lazy_open(message, *state);
    assert_string_equal(agent_json_print(list, *state), "[" PRINTED "]");
    assert_string_equal(agent_json_print(list, *state), "[" PRINTED "]");
}

static void keys_are_found_as_they_are_unescaped(void **state)
{
    json_object *message = store("{\"\\u0074ype\":\"a\\u0069\" , "
                                 "\"content\": [ ],\"id\":{\"type\":\"x\"} }",
                                 *state);

    assert_true(runner_message_is(message, "ai"));
    assert_true(runner_lazy_has_text(message, "type"));
    assert_false(runner_lazy_has_text(message, "id"));
    assert_string_equal(runner_message_text(message, *state), "");
    assert_false(runner_lazy_has_text(store("{ }", *state), "type"));
}

static void other_members_are_found_too(void **state)
{
    json_object *message = store("{\"a\":{\"name\":\"b\"},\"status\":\"error\","
                                 "\"name\":\"cl\\u006fck\",\"type\":\"tool\"}",
                                 *state);

    assert_true(runner_lazy_equals(message, "status", "error"));
    assert_false(runner_lazy_equals(message, "status", "ok"));
    assert_true(runner_lazy_has_text(message, "name"));
    assert_string_equal(runner_lazy_string(message, "name", NULL, *state),
                        "clock");
}

static void messages_are_read_one_after_the_other(void **state)
{
    const char *const texts[] = {"{}", TEXT, "{ \"a\" : {\"b\":[{}]} }"};
    const char *joined = apr_pstrcat(*state, texts[0], texts[1], texts[2],
                                     NULL);
    const char *at = joined;

    for (size_t i = 0; i < 3; i++) {
        json_object *message = agent_json_own(runner_lazy_read(&at), *state);

        assert_string_equal(runner_lazy_text(message).text, texts[i]);
    }
    assert_string_equal(at, "");
}

static void a_message_is_opened_once(void **state)
{
    json_object *message = store(TEXT, *state);
    json_object *tree = runner_lazy_open(message, *state);

    assert_true(json_object_is_type(tree, json_type_object));
    assert_int_equal(json_object_object_length(tree), 5);
    assert_ptr_equal(runner_lazy_open(message, *state), tree);
    assert_int_equal(runner_lazy_text(message).length, 0);
}

static void other_values_are_not_opened(void **state)
{
    static const char *const texts[] = {"true", "false", "\"{}\"",
                                        "{}",   "[]",    "1.5"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_object *value = runner_value_parse(texts[i], strlen(texts[i]),
                                                *state);

        assert_ptr_equal(runner_lazy_open(value, *state), value);
        assert_int_equal(runner_lazy_text(value).length, 0);
        assert_false(runner_lazy_has_text(value, "id"));
        assert_string_equal(runner_message_text(value, *state), "");
    }
    assert_null(runner_lazy_open(NULL, *state));
}

static void the_text_of_blocks_is_joined(void **state)
{
    json_object *message = store("{\"content\":[{\"type\":\"text\",\"text\":"
                                 "\"a\"},{\"type\":\"x\"},{\"type\":\"text\","
                                 "\"text\":\"b\"}]}",
                                 *state);

    assert_string_equal(runner_message_text(message, *state), "ab");
}

static void a_list_is_complete_when_all_have_an_id_and_a_type(void **state)
{
    const char *texts[] = {TEXT, TEXT, NULL};

    assert_true(runner_reducer_is_complete(store_list(texts, *state)));
    texts[1] = "{\"type\":\"ai\"}";
    assert_false(runner_reducer_is_complete(store_list(texts, *state)));
    texts[1] = "{\"id\":\"two\",\"type\":\"\"}";
    assert_false(runner_reducer_is_complete(store_list(texts, *state)));
    assert_true(runner_reducer_is_complete(NULL));
}

static void the_reducer_finds_them_by_id(void **state)
{
    const char *texts[] = {TEXT, "{\"id\":\"two\",\"type\":\"human\"}",
                           "{\"role\":\"user\",\"content\":\"no id\"}", NULL};
    const char *update = "[{\"type\":\"remove\",\"id\":\"two\"},\"new\"]";
    json_object *list = store_list(texts, *state);
    runner_problem_t *problem = NULL;
    json_object *merged = NULL;

    assert_int_equal(
        runner_reducer_apply(&merged, list,
                             runner_value_parse(update, strlen(update), *state),
                             &problem, *state),
        APR_SUCCESS);
    agent_json_own(merged, *state);
    assert_int_equal(json_object_array_length(merged), 3);
    /* Kept as it is, and converted. */
    assert_ptr_equal(json_object_array_get_idx(merged, 0),
                     json_object_array_get_idx(list, 0));
    assert_int_not_equal(
        runner_lazy_text(json_object_array_get_idx(merged, 0)).length, 0);
    assert_true(
        runner_message_is(json_object_array_get_idx(merged, 1), "human"));
    assert_string_equal(
        runner_message_text(json_object_array_get_idx(merged, 2), *state),
        "new");
}

static void models_read_trees(void **state)
{
    const char *texts[] = {
        "{\"type\":\"ai\",\"tool_calls\":[{\"id\":\"c1\",\"name\":\"t\"},"
        "{\"id\":\"c2\",\"name\":\"t\"}]}",
        "{\"type\":\"tool\",\"tool_call_id\":\"c1\"}", TEXT, NULL};
    json_object *history = runner_history_add_results(store_list(texts, *state),
                                                      *state);

    assert_int_equal(json_object_array_length(history), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(json_object_is_type(json_object_array_get_idx(history, i),
                                        json_type_object));
    }
    assert_true(runner_lazy_equals(json_object_array_get_idx(history, 2),
                                   "tool_call_id", "c2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(members_of_text_are_those_of_its_tree),
        CHECK_TEST(a_message_is_printed_as_it_was_stored),
        CHECK_TEST(keys_are_found_as_they_are_unescaped),
        CHECK_TEST(other_members_are_found_too),
        CHECK_TEST(messages_are_read_one_after_the_other),
        CHECK_TEST(a_message_is_opened_once),
        CHECK_TEST(other_values_are_not_opened),
        CHECK_TEST(the_text_of_blocks_is_joined),
        CHECK_TEST(a_list_is_complete_when_all_have_an_id_and_a_type),
        CHECK_TEST(the_reducer_finds_them_by_id),
        CHECK_TEST(models_read_trees),
    };

    return CHECK_RUN(tests);
}
