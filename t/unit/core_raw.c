/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/ */
/* Values that are read in place, in validated text. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "core/raw.h"

/* Strings with escapes in every place, and what they stand for. */
static const char *const strings[][2] = {
    {"\"\"", ""},
    {"\"plain\"", "plain"},
    {"\"\\\"\"", "\""},
    {"\"\\\\\"", "\\"},
    {"\"\\\\\\\"\"", "\\\""},
    {"\"\\\\\\\\\"", "\\\\"},
    {"\"a\\\"b\\\"\"", "a\"b\""},
    {"\"}\\\\\\\"]\"", "}\\\"]"},
    {"\"\\n\\t\\/ \\b\\f\\r\"", "\n\t/ \b\f\r"},
    {"\"\\u0041\\u00e9-\\u20ac\"", "A\xc3\xa9-\xe2\x82\xac"},
    {"\"x\\ud83d\\ude00y\"", "x\xf0\x9f\x98\x80y"},
    {"\"\xe2\x82\xac\\\\\xe2\x82\xac\"", "\xe2\x82\xac\\\xe2\x82\xac"},
};

#define STRINGS (sizeof(strings) / sizeof(strings[0]))

static void a_string_ends_at_the_quote_that_is_not_escaped(void **state)
{
    for (size_t i = 0; i < STRINGS; i++) {
        const char *list = apr_pstrcat(*state, "[", strings[i][0], " , {",
                                       strings[i][0], ":", strings[i][0],
                                       "}, 7]", NULL);
        const char *at = list;
        agent_raw_t item;
        agent_member_t member;

        assert_int_equal(agent_raw_read(list).length, strlen(list));
        assert_true(agent_raw_element_next(&item, &at));
        assert_int_equal(item.length, strlen(strings[i][0]));
        assert_true(agent_raw_element_next(&item, &at));
        assert_true(agent_raw_member_next(&member, &item.text));
        assert_int_equal(member.key_length, strlen(strings[i][0]) - 2);
        assert_int_equal(member.value_length, strlen(strings[i][0]));
        assert_true(agent_raw_member_is(&member, strings[i][1]));
        assert_true(agent_raw_element_next(&item, &at));
        assert_int_equal(agent_raw_kind(item), AGENT_RAW_NUMBER);
        assert_false(agent_raw_element_next(&item, &at));
    }
}

static void a_string_is_unescaped(void **state)
{
    for (size_t i = 0; i < STRINGS; i++) {
        agent_raw_t value = agent_raw_read(strings[i][0]);
        const char *text = agent_raw_string(value, *state);

        assert_string_equal(text, strings[i][1]);
        assert_int_equal(agent_raw_string_length(value), strlen(text));
        assert_true(agent_raw_equals(value, text));
    }
}

static void a_member_is_found_without_its_end(void **state)
{
    const char *object = "{ \"a\" : [1, {\"b\": 2}] , \"\\u0062\" : 3 }";

    assert_ptr_equal(agent_raw_member_find(object, "a"), strstr(object, "[1"));
    assert_ptr_equal(agent_raw_member_find(object, "b"), strstr(object, "3 }"));
    assert_string_equal(agent_raw_member_find(object, "c"), "");
    assert_string_equal(agent_raw_member_find("{}", "c"), "");
    assert_string_equal(agent_raw_member_find("[\"a\"]", "a"), "");
    assert_string_equal(agent_raw_member_find("\"a\"", "a"), "");
    assert_string_equal(agent_raw_member_find("", "a"), "");
}

/* A reader that enters a value walks over it once. */
static void nested_values_are_entered(void **state)
{
    const char *text = "{ \"a\" : [ [ ] , 1 , {\"b\":{}} ] , \"c\":2 }x";
    const char *at = text;
    agent_member_t member;

    (void)state;
    assert_true(agent_raw_member_begin(&member, &at));
    assert_true(agent_raw_member_is(&member, "a"));
    assert_ptr_equal(at, strchr(text, '['));
    at = agent_raw_element_find(at);
    assert_ptr_equal(at, strstr(text, "[ ]"));
    assert_string_equal(agent_raw_element_find(at), "");
    at = agent_raw_end(at);
    at = agent_raw_element_find(at);
    assert_ptr_equal(at, strchr(text, '1'));
    at = agent_raw_element_find(at + 1);
    assert_ptr_equal(at, strstr(text, "{\"b"));
    assert_true(agent_raw_member_begin(&member, &at));
    assert_false(agent_raw_member_begin(&member, &at));
    at = agent_raw_end(agent_raw_end(at));
    assert_string_equal(agent_raw_element_find(at), "");
    at = agent_raw_end(at);
    assert_true(agent_raw_member_next(&member, &at));
    assert_true(agent_raw_member_is(&member, "c"));
    assert_false(agent_raw_member_begin(&member, &at));
    assert_string_equal(agent_raw_end(at), "x");
}

static void keys_equal_as_they_are_unescaped(void **state)
{
    static const char *const keys[] = {"type", "\\u0074ype", "typ\\u0065"};
    static const char *const others[] = {"typ", "types", "typ\\n", "ty\\u0070"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        agent_member_t member = {.key = keys[i], .key_length = strlen(keys[i])};

        assert_true(agent_raw_member_is(&member, "type"));
    }
    for (size_t i = 0; i < 4; i++) {
        agent_member_t member = {.key = others[i],
                                 .key_length = strlen(others[i])};

        assert_false(agent_raw_member_is(&member, "type"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_string_ends_at_the_quote_that_is_not_escaped),
        CHECK_TEST(a_string_is_unescaped),
        CHECK_TEST(a_member_is_found_without_its_end),
        CHECK_TEST(nested_values_are_entered),
        CHECK_TEST(keys_equal_as_they_are_unescaped),
    };

    return CHECK_RUN(tests);
}
