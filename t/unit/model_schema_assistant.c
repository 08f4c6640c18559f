/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/schema.c model/schema_checkpoint.c model/field.c */
/* OBJECTS: model/check.c core/ */
/* Schemas of the bodies of assistants. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/model/schema.h"

#define ID "\"018f2d6e-7c4b-7abc-9def-0123456789ab\""

typedef apr_status_t (*schema_t)(const agent_fields_t **, agent_raw_t,
                                 agent_error_t **, apr_pool_t *);

static apr_status_t check_update(const agent_fields_t **fields,
                                 agent_raw_t body, agent_error_t **err,
                                 apr_pool_t *pool)
{
    return agent_schema_assistant(body, err, pool);
}

static apr_status_t check_version(const agent_fields_t **fields,
                                  agent_raw_t body, agent_error_t **err,
                                  apr_pool_t *pool)
{
    int version = 0;

    return agent_schema_version(&version, body, err, pool);
}

/* The detail of the error; NULL if the body is accepted. */
static const char *check(schema_t schema, const char *text, apr_pool_t *pool)
{
    const agent_fields_t *fields;
    agent_error_t *err = NULL;

    assert_int_equal(agent_json_scan_request(text, strlen(text), &err, pool),
                     APR_SUCCESS);
    if (schema(&fields, agent_raw_read(text), &err, pool) == APR_SUCCESS) {
        return NULL;
    }
    assert_int_equal(err->id, AGENT_E_INVALID);
    return err->detail;
}

static void a_new_assistant_needs_a_graph(void **state)
{
    assert_null(
        check(agent_schema_new_assistant, "{\"graph_id\":\"agent\"}", *state));
    assert_string_equal(check(agent_schema_new_assistant, "{}", *state),
                        "/graph_id: expected a value: it is required.");
    assert_string_equal(
        check(agent_schema_new_assistant, "{\"graph_id\":7}", *state),
        "/graph_id: expected a string of 1 to 64 bytes.");
    assert_string_equal(check(agent_schema_new_assistant,
                              "{\"graph_id\":\"a\",\"assistant_id\":\"x\"}",
                              *state),
                        "/assistant_id: expected a UUID.");
    assert_non_null(check(agent_schema_new_assistant,
                          "{\"graph_id\":\"a\",\"if_exists\":\"x\"}", *state));
}

static void an_update_of_an_assistant_needs_no_member(void **state)
{
    assert_null(check(check_update, "{}", *state));
    assert_null(check(check_update,
                      "{\"name\":\"\",\"config\":{\"tags\":[]},"
                      "\"if_exists\":1}",
                      *state));
    assert_string_equal(check(check_update, "{\"name\":7}", *state),
                        "/name: expected a string of 0 to 512 bytes.");
    assert_string_equal(
        check(check_update,
              "{\"config\":{\"configurable\":{\"checkpoint_id\":" ID "}}}",
              *state),
        "/config/configurable/checkpoint_id: expected none: it is not "
        "supported yet.");
}

static void a_version_is_a_positive_number(void **state)
{
    static const char *const body = "{\"version\":12}";
    agent_error_t *err = NULL;
    int version = 3;

    assert_int_equal(
        agent_schema_version(&version, agent_raw_read("{}"), &err, *state),
        APR_SUCCESS);
    assert_int_equal(version, 3);
    assert_int_equal(
        agent_schema_version(&version, agent_raw_read(body), &err, *state),
        APR_SUCCESS);
    assert_int_equal(version, 12);
    assert_non_null(check(check_version, "{}", *state));
    assert_non_null(check(check_version, "{\"version\":0}", *state));
    assert_non_null(check(check_version, "{\"version\":2147483648}", *state));
    assert_non_null(check(check_version, "{\"version\":\"1\"}", *state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_new_assistant_needs_a_graph),
        CHECK_TEST(an_update_of_an_assistant_needs_no_member),
        CHECK_TEST(a_version_is_a_positive_number)};

    return CHECK_RUN(tests);
}
