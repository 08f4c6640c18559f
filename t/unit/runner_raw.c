/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/base/raw.c runners/builtin/base/value.c */
/* OBJECTS: runners/builtin/base/clean.c runners/builtin/base/text.c */
/* OBJECTS: runners/builtin/base/surrogates.c core/ */
/* JSON of models and tools that stays text. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/raw.h"
#include "runners/builtin/base/value.h"

static const char *read_text(const char *text, apr_pool_t *pool)
{
    agent_raw_t value = runner_raw_read(text, strlen(text), pool);

    return value.length > 0 ? value.text : NULL;
}

static json_object *read_arguments(const char *text, apr_pool_t *pool)
{
    size_t left = RUNNER_VALUE_WEIGHT_MAX;

    return runner_raw_arguments(text, strlen(text), &left, pool);
}

static void a_value_loses_its_white_space(void **state)
{
    assert_string_equal(
        read_text(" {\n\t\"a b\" : [ 1 , \"c \\\" d\" ] ,\r \"e\" : { } } ",
                  *state),
        "{\"a b\":[1,\"c \\\" d\"],\"e\":{}}");
    assert_string_equal(read_text(" 1.50e2 ", *state), "1.50e2");
}

static void a_value_is_cleaned(void **state)
{
    assert_string_equal(read_text("[\"\\u0000\xff\"]", *state),
                        "[\"\\ufffd\xef\xbf\xbd\"]");
}

static void json_that_json_c_would_change_is_refused(void **state)
{
    assert_null(read_text("", *state));
    assert_null(read_text("{", *state));
    assert_null(read_text("{} {}", *state));
    assert_null(read_text("[NaN]", *state));
    assert_null(read_text("{\"a\":1,\"\\u0061\":2}", *state));
    assert_null(read_text("[1e999]", *state));
}

static void a_value_is_nested_64_levels_at_most(void **state)
{
    char text[2 * (RUNNER_VALUE_DEPTH + 1) + 1] = "";

    memset(text, '[', RUNNER_VALUE_DEPTH);
    memset(text + RUNNER_VALUE_DEPTH, ']', RUNNER_VALUE_DEPTH);
    assert_string_equal(read_text(text, *state), text);
    memset(text, '[', RUNNER_VALUE_DEPTH + 1);
    memset(text + RUNNER_VALUE_DEPTH + 1, ']', RUNNER_VALUE_DEPTH + 1);
    assert_null(read_text(text, *state));
}

static void a_raw_value_prints_as_its_text_in_other_values(void **state)
{
    json_object *args = read_arguments("{\"x\": [1.0, \"/\"]}", *state);
    json_object *list = agent_json_own(runner_value_list_of(runner_value_wrap(
                                           "args", runner_value_share(args))),
                                       *state);

    assert_true(json_object_is_type(args, json_type_object));
    assert_string_equal(agent_json_print(list, *state),
                        "[{\"args\":{\"x\":[1.0,\"/\"]}}]");
    assert_string_equal(runner_raw_text(args, *state), "{\"x\":[1.0,\"/\"]}");
}

static void arguments_are_an_object_within_the_weight(void **state)
{
    size_t left = 2000;

    assert_null(read_arguments("[1]", *state));
    assert_null(read_arguments("\"a\"", *state));
    assert_non_null(runner_raw_arguments("{\"a\":1}", 7, &left, *state));
    assert_in_range(left, 500, 1500);
    assert_null(runner_raw_arguments("{\"a\":{}}", 8, &left, *state));
}

static void members_are_read_of_raw_objects_and_trees(void **state)
{
    const char *text = "{\"n\":1,\"\\u0074\":\"a\\nb\"}";
    json_object *tree = runner_value_parse(text, strlen(text), *state);
    json_object *raw = read_arguments(text, *state);

    assert_string_equal(runner_raw_string(raw, "t", *state), "a\nb");
    assert_string_equal(runner_raw_string(tree, "t", *state), "a\nb");
    assert_null(runner_raw_string(raw, "n", *state));
    assert_null(runner_raw_string(raw, "none", *state));
    assert_string_equal(runner_raw_text(tree, *state),
                        "{\"n\":1,\"t\":\"a\\nb\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_value_loses_its_white_space),
        CHECK_TEST(a_value_is_cleaned),
        CHECK_TEST(json_that_json_c_would_change_is_refused),
        CHECK_TEST(a_value_is_nested_64_levels_at_most),
        CHECK_TEST(a_raw_value_prints_as_its_text_in_other_values),
        CHECK_TEST(arguments_are_an_object_within_the_weight),
        CHECK_TEST(members_are_read_of_raw_objects_and_trees),
    };

    return CHECK_RUN(tests);
}
