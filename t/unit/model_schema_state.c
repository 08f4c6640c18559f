/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/schema_checkpoint.c model/field.c model/check.c core/ */
/* The schemas of bodies about states. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/core/scan.h"
#include "../../mod_agent/model/schema.h"

/* The detail of the error; NULL if the body is accepted. */
static const char *check(const char *text, apr_pool_t *pool)
{
    agent_error_t *err = NULL;

    assert_int_equal(agent_json_scan_request(text, strlen(text), &err, pool),
                     APR_SUCCESS);
    if (agent_schema_state(agent_raw_read(text),
                           "01890000-0000-7000-8000-00000000000a", &err, pool)
        == APR_SUCCESS) {
        return NULL;
    }
    assert_int_equal(err->id, AGENT_E_INVALID);
    return err->detail;
}

typedef apr_status_t (*schema_fn_t)(agent_raw_t body, const char *thread_id,
                                    agent_error_t **err, apr_pool_t *pool);

/* Checks that each text is accepted, or refused with the detail that its second
 * half begins. */
static void examine(schema_fn_t schema, const char *const (*cases)[2],
                    size_t count, apr_pool_t *pool)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = cases[i][0];
        const char *detail = cases[i][1];
        agent_error_t *err = NULL;
        apr_status_t rv = schema(agent_raw_read(text),
                                 "01890000-0000-7000-8000-00000000000a", &err,
                                 pool);

        assert_int_equal(rv == APR_SUCCESS, detail == NULL);
        if (detail != NULL) {
            assert_int_equal(err->id, AGENT_E_INVALID);
            assert_memory_equal(err->detail, detail, strlen(detail));
        }
    }
}

#define ID "01890000-0000-7000-8000-00000000000a"

static void the_members_of_a_reading_are_checked(void **state)
{
    static const char *const history[][2] = {
        {"{}", NULL},
        {"{\"limit\":1000,\"before\":\"" ID "\",\"metadata\":{\"a\":1},"
         "\"select\":[\"values\"]}",
         NULL},
        {"{\"before\":{\"configurable\":{\"checkpoint_id\":\"" ID "\"}},"
         "\"checkpoint\":{\"checkpoint_ns\":\"a|b:1\"},\"select\":\"next\"}",
         NULL},
        {"{\"limit\":1.5}", "/limit: "},
        {"{\"before\":[]}", "/before: "},
        {"{\"before\":{\"configurable\":{\"checkpoint_id\":1}}}",
         "/before/configurable/checkpoint_id: "},
        {"{\"checkpoint\":{\"checkpoint_map\":1}}",
         "/checkpoint/checkpoint_map: "}};
    static const char *const at[][2] = {
        {"{\"checkpoint\":{},\"subgraphs\":true}", NULL},
        {"{\"checkpoint\":null}", "/checkpoint: "},
        {"{\"checkpoint\":{},\"subgraphs\":1}", "/subgraphs: "},
        {"{\"checkpoint\":{\"thread_id\":\"" ID "\"},"
         "\"select\":[\"x\"]}",
         "/select/0: "}};

    examine(agent_schema_history, history, sizeof(history) / sizeof(*history),
            *state);
    examine(agent_schema_state_at, at, sizeof(at) / sizeof(*at), *state);
}

static void the_members_of_an_update_are_checked(void **state)
{
    static const char *const good[] = {
        "{}", "{\"values\":null,\"as_node\":null,\"checkpoint\":null}",
        "{\"values\":[[\"messages\",1]],\"as_node\":\"agent\",\"other\":1}",
        "{\"checkpoint\":{\"thread_id\":\"01890000-0000-7000-8000-"
        "00000000000A\","
        "\"checkpoint_ns\":\"\",\"checkpoint_map\":{}}}"};
    static const char *const bad[][2] = {
        {"[]", "/: expected an object."},
        {"{\"values\":1}", "/values: expected an object or an array."},
        {"{\"as_node\":\"\"}", "/as_node: "},
        {"{\"checkpoint_id\":\"1\"}", "/checkpoint_id: "},
        {"{\"checkpoint\":{\"checkpoint_ns\":\"a\"}}",
         "/checkpoint/checkpoint_ns: "},
        {"{\"checkpoint\":{\"thread_id\":"
         "\"01890000-0000-7000-8000-00000000000b\"}}",
         "/checkpoint/thread_id: expected the thread of the path."},
        {"{\"checkpoint_id\":\"01890000-0000-7000-8000-00000000000a\","
         "\"checkpoint\":{\"checkpoint_id\":"
         "\"01890000-0000-7000-8000-00000000000b\"}}",
         "/checkpoint/checkpoint_id: "}};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(check(good[i], *state));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *detail = check(bad[i][0], *state);

        assert_non_null(detail);
        assert_memory_equal(detail, bad[i][1], strlen(bad[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_members_of_a_reading_are_checked),
        CHECK_TEST(the_members_of_an_update_are_checked)};

    return CHECK_RUN(tests);
}
