/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/part.c runners/builtin/message/ */
/* OBJECTS: runners/builtin/base/clean.c runners/builtin/base/raw.c */
/* OBJECTS: runners/builtin/base/value.c runners/builtin/base/text.c */
/* OBJECTS: runners/builtin/base/surrogates.c runners/builtin/base/problem.c */
/* OBJECTS: core/ */
/* Parts of a state that are added to that of a run. */
#include "check.h"

#include <string.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/run/part.h"

/* Adds the values of a part; returns the state as text, NULL without a part.
 */
static const char *add(json_object *values, const char *part, apr_pool_t *pool)
{
    runner_run_t run = {.values = values};
    agent_error_t *err;
    json_object *result;

    if (agent_json_parse(&result, part, strlen(part), &err, pool)
        != APR_SUCCESS) {
        fail_msg("%s", part);
    }
    return runner_part_add(&run, result) ? agent_json_print(values, pool)
                                         : NULL;
}

static void a_value_is_taken_out_of_its_wrapper(void **state)
{
    json_object *values = agent_json_own(json_object_new_object(), *state);

    assert_string_equal(
        add(values,
            "{\"values\":{\"a\":{\"$value\":{\"$same\":true}},\"b\":1,"
            "\"c\":{\"$value\":1,\"d\":2}}}",
            *state),
        "{\"a\":{\"$same\":true},\"b\":1,\"c\":{\"$value\":1,\"d\":2}}");
}

static void a_list_continues_where_the_last_part_ended(void **state)
{
    json_object *values = agent_json_own(json_object_new_object(), *state);

    assert_string_equal(
        add(values,
            "{\"values\":{\"l\":{\"$list\":{\"keep\":0,\"items\":[1,2]}}}}",
            *state),
        "{\"l\":[1,2]}");
    assert_string_equal(
        add(values,
            "{\"values\":{\"l\":{\"$list\":{\"keep\":2,\"items\":[3]}}}}",
            *state),
        "{\"l\":[1,2,3]}");
    assert_null(add(
        values, "{\"values\":{\"l\":{\"$list\":{\"keep\":2,\"items\":[4]}}}}",
        *state));
    assert_null(add(values, "{\"values\":[]}", *state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_value_is_taken_out_of_its_wrapper),
        CHECK_TEST(a_list_continues_where_the_last_part_ended)};

    return CHECK_RUN(tests);
}
