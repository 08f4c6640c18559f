/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/schema.c model/schema_checkpoint.c model/field.c */
/* OBJECTS: model/check.c core/ */
/* The schema of POST /threads. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/model/schema.h"

/* The detail of the error; NULL if the body is accepted. */
static const char *check(const char *text, apr_pool_t *pool)
{
    const agent_fields_t *fields;
    agent_error_t *err = NULL;

    assert_int_equal(agent_json_scan_request(text, strlen(text), &err, pool),
                     APR_SUCCESS);
    if (agent_schema_thread(&fields, agent_raw_read(text), &err, pool)
        == APR_SUCCESS) {
        return NULL;
    }
    assert_int_equal(err->id, AGENT_E_INVALID);
    return err->detail;
}

static void the_client_may_choose_the_id_of_a_thread(void **state)
{
    assert_null(check("{\"thread_id\":\"018F2D6E-7C4B-7ABC-9DEF-0123456789AB\","
                      "\"if_exists\":\"do_nothing\"}",
                      *state));
    assert_string_equal(check("{\"thread_id\":\"x\"}", *state),
                        "/thread_id: expected a UUID.");
    assert_string_equal(check("{\"if_exists\":\"x\"}", *state),
                        "/if_exists: expected raise or do_nothing.");
}

static void supersteps_are_lists_of_updates(void **state)
{
    static const char *const cases[][2] = {
        {"[]", NULL},
        {"[{\"updates\":[{}]}]", NULL},
        {"[{\"updates\":[{\"values\":[[\"a\",1]],\"as_node\":\"n\"},"
         "{\"command\":{}}]},{\"updates\":[{}]}]",
         NULL},
        {"{}", "/supersteps: expected 0 to 1000 objects."},
        {"[{}]", "/supersteps/0/updates: "},
        {"[{\"updates\":[]}]",
         "/supersteps/0/updates: expected 1 to 1000 objects."},
        {"[{\"updates\":[{\"as_node\":1}]}]",
         "/supersteps/0/updates/0/as_node: "}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *detail = check(
            apr_psprintf(*state, "{\"supersteps\":%s}", cases[i][0]), *state);

        if (cases[i][1] == NULL) {
            assert_null(detail);
        }
        else {
            assert_memory_equal(detail, cases[i][1], strlen(cases[i][1]));
        }
    }
}

static void a_ttl_is_minutes_or_an_object_with_them(void **state)
{
    static const char *const cases[][2] = {
        {"1", NULL},
        {"0.01", NULL},
        {"5256000", NULL},
        {"null", NULL},
        {"{}", NULL},
        {"{\"ttl\":5}", NULL},
        {"{\"ttl\":null,\"strategy\":null}", NULL},
        {"{\"ttl\":0.5,\"strategy\":\"delete\"}", NULL},
        {"0",
         "/ttl: expected minutes, a number from 0.01 to 5256000 (ten years)."},
        {"-1",
         "/ttl: expected minutes, a number from 0.01 to 5256000 (ten years)."},
        {"5256001",
         "/ttl: expected minutes, a number from 0.01 to 5256000 (ten years)."},
        {"\"5\"", "/ttl: expected minutes, or an object with them as ttl."},
        {"[]", "/ttl: expected minutes, or an object with them as ttl."},
        {"{\"ttl\":0}",
         "/ttl/ttl: expected minutes, a number from 0.01 to 5256000 (ten "
         "years)."},
        {"{\"ttl\":\"5\"}",
         "/ttl/ttl: expected minutes, a number from 0.01 to 5256000 (ten "
         "years)."},
        {"{\"ttl\":5,\"strategy\":\"keep_latest\"}",
         "/ttl/strategy: expected delete: POST /threads/prune deletes all but "
         "the latest state."}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *body = apr_psprintf(*state, "{\"ttl\":%s}", cases[i][0]);
        const char *error = check(body, *state);

        if (cases[i][1] == NULL) {
            assert_null(error);
        }
        else {
            assert_string_equal(error, cases[i][1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_client_may_choose_the_id_of_a_thread),
        CHECK_TEST(supersteps_are_lists_of_updates),
        CHECK_TEST(a_ttl_is_minutes_or_an_object_with_them)};

    return CHECK_RUN(tests);
}
