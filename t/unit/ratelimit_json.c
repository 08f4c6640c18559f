/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/json.c */
/* Text as JSON strings. */
#include "check.h"

#include "../../mod_ratelimit_regional/rules/json.h"

#define LOST "\xef\xbf\xbd"

static void check_json(const char *text, const char *expected, apr_pool_t *pool)
{
    assert_string_equal(rlr_text_json(text, pool), expected);
}

static void plain_text_is_put_in_quotes(void **state)
{
    check_json("", "\"\"", *state);
    check_json("POST /runs/{uuid}", "\"POST /runs/{uuid}\"", *state);
}

static void signs_that_json_uses_are_escaped(void **state)
{
    check_json("a\"b\\c", "\"a\\\"b\\\\c\"", *state);
    check_json("\n\t\x01\x1f\x7f", "\"\\u000a\\u0009\\u0001\\u001f\\u007f\"",
               *state);
}

static void utf8_stays_as_it_is(void **state)
{
    check_json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
               "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", *state);
}

static void what_is_not_utf8_is_replaced(void **state)
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
        CHECK_TEST(plain_text_is_put_in_quotes),
        CHECK_TEST(signs_that_json_uses_are_escaped),
        CHECK_TEST(utf8_stays_as_it_is),
        CHECK_TEST(what_is_not_utf8_is_replaced)};

    return CHECK_RUN(tests);
}
