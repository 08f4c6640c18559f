/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/schema_account.c model/schema.c model/schema_checkpoint.c */
/* OBJECTS: model/field.c model/check.c core/ */
/* Schemas of the bodies of platform hosts. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/model/schema.h"

#define UUID "01900000-0000-7000-8000-000000000000"

/* The detail of the error; NULL if the body is accepted. */
static const char *check(agent_account_body_t kind, const char *text,
                         apr_pool_t *pool)
{
    agent_error_t *err = NULL;
    const agent_fields_t *fields;

    assert_int_equal(agent_json_scan_request(text, strlen(text), &err, pool),
                     APR_SUCCESS);
    if (agent_schema_account(&fields, kind, agent_raw_read(text), &err, pool)
        == APR_SUCCESS) {
        return NULL;
    }
    assert_int_equal(err->id, AGENT_E_INVALID);
    return err->detail;
}

static void a_sign_up_needs_a_name(void **state)
{
    assert_null(check(AGENT_ACCOUNT_SIGN_UP,
                      "{\"name\":\"a\",\"invitation\":\"\"}", *state));
    assert_string_equal(check(AGENT_ACCOUNT_SIGN_UP, "{}", *state),
                        "/name: expected a value: it is required.");
    assert_string_equal(check(AGENT_ACCOUNT_SIGN_UP, "{\"name\":\"\"}", *state),
                        "/name: expected a string of 1 to 800 bytes.");
}

static void an_account_is_renamed_or_closed(void **state)
{
    assert_null(check(AGENT_ACCOUNT_UPDATE, "{}", *state));
    assert_null(
        check(AGENT_ACCOUNT_UPDATE, "{\"name\":null,\"closed\":true}", *state));
    assert_string_equal(check(AGENT_ACCOUNT_UPDATE, "{\"closed\":1}", *state),
                        "/closed: expected true or false.");
}

static void a_deletion_is_confirmed_by_the_id_of_the_account(void **state)
{
    static const char *const bad[] = {"\"a\"", "1", "true", "\"" UUID "0\""};

    assert_null(
        check(AGENT_ACCOUNT_DELETE, "{\"confirm\":\"" UUID "\"}", *state));
    assert_string_equal(check(AGENT_ACCOUNT_DELETE, "{}", *state),
                        "/confirm: expected a value: it is required.");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char body[80];

        snprintf(body, sizeof(body), "{\"confirm\":%s}", bad[i]);
        assert_string_equal(
            check(AGENT_ACCOUNT_DELETE, body, *state),
            "/confirm: expected the id of the account, a UUID.");
    }
}

static void the_scopes_of_a_key_are_a_list(void **state)
{
    assert_null(check(AGENT_ACCOUNT_KEY,
                      "{\"name\":\"a\",\"scopes\":[\"read\",\"admin\"]}",
                      *state));
    assert_string_equal(check(AGENT_ACCOUNT_KEY,
                              "{\"name\":\"a\",\"scopes\":\"read\"}", *state),
                        "/scopes: expected an array of scopes.");
    assert_non_null(check(AGENT_ACCOUNT_KEY,
                          "{\"name\":\"a\",\"scopes\":[\"all\"]}", *state));
}

static void times_are_seconds_up_to_ten_years(void **state)
{
    assert_null(check(AGENT_ACCOUNT_KEY,
                      "{\"name\":\"a\",\"expires_in_sec\":315360000}", *state));
    assert_non_null(check(AGENT_ACCOUNT_KEY,
                          "{\"name\":\"a\",\"expires_in_sec\":315360001}",
                          *state));
    assert_non_null(check(AGENT_ACCOUNT_KEY,
                          "{\"name\":\"a\",\"expires_in_sec\":0}", *state));
    assert_null(check(AGENT_ACCOUNT_ROTATION, "{\"overlap_sec\":0}", *state));
    assert_non_null(
        check(AGENT_ACCOUNT_ROTATION, "{\"overlap_sec\":0.5}", *state));
}

static void the_kind_of_a_key_decides_on_its_user_and_deployment(void **state)
{
    assert_null(check(
        AGENT_ACCOUNT_KEY,
        "{\"name\":\"a\",\"kind\":\"personal\",\"user_id\":\"b\"}", *state));
    assert_null(check(AGENT_ACCOUNT_KEY,
                      "{\"name\":\"a\",\"kind\":\"deployment\","
                      "\"deployment\":\"b\"}",
                      *state));
    assert_null(check(AGENT_ACCOUNT_KEY,
                      "{\"name\":\"a\",\"deployment\":\"b\"}", *state));
    assert_string_equal(check(AGENT_ACCOUNT_KEY,
                              "{\"name\":\"a\",\"kind\":\"personal\"}", *state),
                        "/user_id: expected a value: a personal key needs it.");
    assert_string_equal(
        check(AGENT_ACCOUNT_KEY, "{\"name\":\"a\",\"user_id\":\"b\"}", *state),
        "/user_id: expected none: kind is not personal.");
    assert_string_equal(
        check(AGENT_ACCOUNT_KEY, "{\"name\":\"a\",\"kind\":\"deployment\"}",
              *state),
        "/deployment: expected a value: a key of kind deployment needs it.");
}

static void an_unknown_member_is_named(void **state)
{
    assert_string_equal(check(AGENT_ACCOUNT_KEY,
                              "{\"name\":\"a\",\"scope\":[\"read\"]}", *state),
                        "/scope: expected no member of this name.");
    assert_string_equal(check(AGENT_ACCOUNT_UPDATE, "{\"Name\":null}", *state),
                        "/Name: expected no member of this name.");
    assert_non_null(
        check(AGENT_ACCOUNT_SIGN_UP, "{\"name\":\"a\",\"x\":1}", *state));
    assert_string_equal(check(AGENT_ACCOUNT_DELETE,
                              "{\"confirm\":\"" UUID "\",\"x\":1}", *state),
                        "/x: expected no member of this name.");
    assert_non_null(check(AGENT_ACCOUNT_ROTATION, "{\"overlap\":1}", *state));
    assert_null(check(AGENT_ACCOUNT_UPDATE, "{\"\\u006eame\":\"a\"}", *state));
}

static void a_name_of_more_than_64_bytes_is_not_repeated(void **state)
{
    char name[66];
    char body[80];
    char expected[120];

    memset(name, 'x', sizeof(name));
    name[64] = '\0';
    snprintf(body, sizeof(body), "{\"%s\":1}", name);
    snprintf(expected, sizeof(expected),
             "/%s: expected no member of this name.", name);
    assert_string_equal(check(AGENT_ACCOUNT_UPDATE, body, *state), expected);
    name[64] = 'x';
    name[65] = '\0';
    snprintf(body, sizeof(body), "{\"%s\":1}", name);
    assert_string_equal(check(AGENT_ACCOUNT_UPDATE, body, *state),
                        "/: expected no member with such a long name.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_sign_up_needs_a_name),
        CHECK_TEST(an_account_is_renamed_or_closed),
        CHECK_TEST(a_deletion_is_confirmed_by_the_id_of_the_account),
        CHECK_TEST(the_scopes_of_a_key_are_a_list),
        CHECK_TEST(the_kind_of_a_key_decides_on_its_user_and_deployment),
        CHECK_TEST(an_unknown_member_is_named),
        CHECK_TEST(a_name_of_more_than_64_bytes_is_not_repeated),
        CHECK_TEST(times_are_seconds_up_to_ten_years)};

    return CHECK_RUN(tests);
}
