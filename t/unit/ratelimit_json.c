/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/json.c */
/* JSON strings. */
#include "check.h"

#include "../../mod_ratelimit_regional/rules/json.h"

#define LOST "\xef\xbf\xbd"

static void check_json(const char *text, const char *expected, apr_pool_t *pool)
{
    assert_string_equal(rlr_json_quote(text, pool), expected);
}

static void text_is_quoted(void **state)
{
    check_json("", "\"\"", *state);
    check_json("POST /runs/{uuid}", "\"POST /runs/{uuid}\"", *state);
}

static void special_characters_are_escaped(void **state)
{
    check_json("a\"b\\c", "\"a\\\"b\\\\c\"", *state);
    check_json("\n\t\x01\x1f\x7f", "\"\\u000a\\u0009\\u0001\\u001f\\u007f\"",
               *state);
}

static void utf8_is_unchanged(void **state)
{
    check_json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
               "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", *state);
}

static void invalid_utf8_is_replaced(void **state)
{
    check_json("a\xff", "\"a" LOST "\"", *state);
    check_json("\xc3", "\"" LOST "\"", *state);
    check_json("\xe2\x82", "\"" LOST LOST "\"", *state);
    check_json("\xc0\xaf", "\"" LOST LOST "\"", *state);
    check_json("\xed\xa0\x80", "\"" LOST LOST LOST "\"", *state);
    check_json("\xf4\x90\x80\x80", "\"" LOST LOST LOST LOST "\"", *state);
    check_json("\xf0\x80\x80\x80", "\"" LOST LOST LOST LOST "\"", *state);
    check_json("\xe0\x80\x80z", "\"" LOST LOST LOST "z\"", *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(text_is_quoted), CHECK_TEST(special_characters_are_escaped),
        CHECK_TEST(utf8_is_unchanged), CHECK_TEST(invalid_utf8_is_replaced)};

    return CHECK_RUN(tests);
}
