/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/ */
/* JSON of bodies: errors with their position, duplicate keys, members. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/core/json.h"

static agent_error_t *parse_bad(const char *text, apr_pool_t *pool)
{
    json_object *object;
    agent_error_t *err = NULL;

    assert_int_not_equal(
        agent_json_parse(&object, text, strlen(text), &err, pool), APR_SUCCESS);
    return err;
}

static json_object *parse_good(const char *text, apr_pool_t *pool)
{
    json_object *object;
    agent_error_t *err = NULL;

    assert_int_equal(agent_json_parse(&object, text, strlen(text), &err, pool),
                     APR_SUCCESS);
    return object;
}

static void text_that_is_not_json_is_400_with_its_byte(void **state)
{
    agent_error_t *err = parse_bad("{\"a\": nope}", *state);

    assert_int_equal(err->id, AGENT_E_INVALID_JSON);
    assert_string_equal(err->detail, "The body is not JSON (byte 6).");
}

static void a_nul_character_is_422_with_its_pointer(void **state)
{
    agent_error_t *err = parse_bad("{\"a\":[\"\\u0000\"]}", *state);

    assert_int_equal(err->id, AGENT_E_NUL_CHARACTER);
    assert_non_null(strstr(err->detail, "/a/0:"));
}

static void a_duplicate_key_is_422_with_its_pointer(void **state)
{
    agent_error_t *err = parse_bad("{\"a\":1,\"a\":2}", *state);

    assert_int_equal(err->id, AGENT_E_INVALID);
    assert_string_equal(err->detail, "/a: is a duplicate key.");
    err = parse_bad("{\"x\":[0,{\"y\":{\"k\":{},\"z\":1,\"k\":[]}}]}", *state);
    assert_string_equal(err->detail, "/x/1/y/k: is a duplicate key.");
    /* The same key in another spelling. */
    err = parse_bad("{\"a\":1,\"\\u0061\":2}", *state);
    assert_string_equal(err->detail, "/\\u0061: is a duplicate key.");
}

static void equal_keys_of_different_objects_are_accepted(void **state)
{
    parse_good("{\"a\":{\"a\":[{\"a\":1},{\"a\":2}]},\"b\":{\"a\":3}}", *state);
}

static void scalars_parse_as_well_as_objects(void **state)
{
    assert_null(parse_good("null", *state));
    assert_int_equal(json_object_get_int(parse_good("17", *state)), 17);
    assert_string_equal(json_object_get_string(parse_good("\"x\"", *state)),
                        "x");
}

static void members_are_read_with_a_fallback(void **state)
{
    json_object *object = parse_good(
        "{\"s\":\"x\",\"i\":-5,\"n\":null,\"d\":1.5}", *state);

    assert_string_equal(agent_json_string(object, "s", "f"), "x");
    assert_string_equal(agent_json_string(object, "i", "f"), "f");
    assert_string_equal(agent_json_string(object, "n", "f"), "f");
    assert_string_equal(agent_json_string(NULL, "s", "f"), "f");
    assert_int_equal(agent_json_integer(object, "i", 7), -5);
    assert_int_equal(agent_json_integer(object, "d", 7), 7);
    assert_int_equal(agent_json_integer(object, "none", 7), 7);
}

static void quoting_escapes_special_characters(void **state)
{
    assert_string_equal(agent_json_quote("a\"b\\\n/\x01", *state),
                        "\"a\\\"b\\\\\\n/\\u0001\"");
    assert_string_equal(agent_json_quote(NULL, *state), "null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(text_that_is_not_json_is_400_with_its_byte),
        CHECK_TEST(a_nul_character_is_422_with_its_pointer),
        CHECK_TEST(a_duplicate_key_is_422_with_its_pointer),
        CHECK_TEST(equal_keys_of_different_objects_are_accepted),
        CHECK_TEST(scalars_parse_as_well_as_objects),
        CHECK_TEST(members_are_read_with_a_fallback),
        CHECK_TEST(quoting_escapes_special_characters)};

    return CHECK_RUN(tests);
}
