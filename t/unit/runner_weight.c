/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/weight.c runners/builtin/base/raw.c */
/* OBJECTS: runners/builtin/base/value.c runners/builtin/base/clean.c */
/* OBJECTS: runners/builtin/base/surrogates.c runners/builtin/base/text.c */
/* OBJECTS: core/ */
/* The weight of start lines, and of messages with raw arguments. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/raw.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/run/weight.h"

static runner_weight_t estimate(const char *text)
{
    runner_weight_t weight;
    agent_error_t *err = NULL;
    apr_pool_t *pool;

    apr_pool_create(&pool, NULL);
    assert_int_equal(
        runner_weight_estimate(&weight, text, strlen(text), &err, pool),
        APR_SUCCESS);
    apr_pool_destroy(pool);
    return weight;
}

/* A list of 1,000 elements. */
static const char *make_list(const char *element, apr_pool_t *pool)
{
    size_t length = strlen(element);
    char *list = apr_palloc(pool, 1000 * (length + 1) + 2);
    char *end = list;

    for (int i = 0; i < 1000; i++) {
        *end++ = i == 0 ? '[' : ',';
        memcpy(end, element, length);
        end += length;
    }
    strcpy(end, "]");
    return list;
}

static void white_space_before_a_line_does_not_change_its_weight(void **state)
{
    const char *line = apr_pstrcat(
        *state, "{\"type\":\"start\",\"input\":{\"messages\":",
        make_list("\"a\"", *state), "}}", NULL);
    runner_weight_t plain = estimate(line);
    runner_weight_t spaced = estimate(
        apr_pstrcat(*state, " \t\r\n", line, " ", NULL));

    assert_true(plain.begun > 30 * plain.line);
    assert_int_equal(spaced.line, plain.line);
    assert_int_equal(spaced.begun, plain.begun);
    assert_int_equal(spaced.text, plain.text + strlen(" \t\r\n "));
}

static void the_state_of_a_start_counts_until_it_is_read(void **state)
{
    runner_weight_t without = estimate(
        "{\"type\":\"start\",\"checkpoint\":{\"bytes\":0}}");
    runner_weight_t with = estimate(
        "{\"type\":\"start\",\"checkpoint\":{\"bytes\":100000}}");
    runner_weight_t most = estimate(
        "{\"type\":\"start\",\"checkpoint\":{\"bytes\":99999999999}}");

    assert_int_equal(without.state, 0);
    assert_int_equal(with.state, 12 * 100000);
    assert_int_equal(with.begun - with.line, with.state);
    assert_true(with.text > 100000);
    assert_int_equal(most.state, RUNNER_STATE_WEIGHT_MAX);
}

static void only_a_start_waits_for_memory(void **state)
{
    runner_weight_t weight = estimate(
        "{\"type\":\"reply\",\"input\":[1,2,3],\"checkpoint\":{\"bytes\":9}}");

    assert_true(weight.line > 0);
    assert_int_equal(weight.begun, 0);
    assert_int_equal(weight.state, 0);
}

static void a_line_that_is_not_json_is_refused(void **state)
{
    static const char *const lines[] = {"[1,", "{\"a\":1,\"a\":2}"};

    for (int i = 0; i < 2; i++) {
        runner_weight_t weight;
        agent_error_t *err = NULL;

        assert_int_equal(runner_weight_estimate(&weight, lines[i],
                                                strlen(lines[i]), &err, *state),
                         APR_EGENERAL);
        assert_non_null(err->detail);
        assert_int_equal(weight.begun, 0);
    }
}

/* The list of one AI message with that call. */
static json_object *make_messages(json_object *args, apr_pool_t *pool)
{
    json_object *call = runner_value_wrap("args", runner_value_share(args));
    json_object *block = runner_value_wrap("input", runner_value_share(args));
    json_object *message = runner_value_wrap("tool_calls",
                                             runner_value_list_of(call));

    runner_value_add(message, "content", runner_value_list_of(block));
    return agent_json_own(runner_value_list_of(message), pool);
}

static void raw_arguments_weigh_their_text(void **state)
{
    size_t left = RUNNER_VALUE_WEIGHT_MAX;
    const char *text = apr_pstrcat(*state, "{\"a\":", make_list("{}", *state),
                                   "}", NULL);
    json_object *raw = runner_raw_arguments(text, strlen(text), &left, *state);
    json_object *tree = runner_value_parse(text, strlen(text), *state);
    size_t excess = runner_weight_excess(make_messages(raw, *state));
    size_t weight = RUNNER_VALUE_WEIGHT_MAX - left;

    assert_int_equal(weight, runner_value_weigh(text, strlen(text)));
    assert_true(excess < 2 * weight);
    assert_true(2 * weight - excess < 2 * (strlen(text) + 1000));
    assert_int_equal(runner_weight_excess(make_messages(tree, *state)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(white_space_before_a_line_does_not_change_its_weight),
        CHECK_TEST(the_state_of_a_start_counts_until_it_is_read),
        CHECK_TEST(only_a_start_waits_for_memory),
        CHECK_TEST(a_line_that_is_not_json_is_refused),
        CHECK_TEST(raw_arguments_weigh_their_text),
    };

    return CHECK_RUN(tests);
}
