/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/schema_checkpoint.c model/field.c model/check.c core/ */
/* The schemas of bodies about states. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

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

#define ID    "01890000-0000-7000-8000-00000000000a"
#define OTHER "01890000-0000-7000-8000-00000000000b"

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
        "{}",
        "{\"values\":null,\"as_node\":null,\"checkpoint\":null}",
        "{\"values\":[[\"messages\",1]],\"as_node\":\"agent\",\"other\":1}",
        "{\"checkpoint\":{\"thread_id\":\"01890000-0000-7000-8000-"
        "00000000000A\","
        "\"checkpoint_ns\":\"\",\"checkpoint_map\":{}}}",
        "{\"checkpoint\":{\"checkpoint_ns\":\"a:1|b\"}}",
        "{\"checkpoint_id\":\"" OTHER "\",\"checkpoint\":{\"checkpoint_ns\":"
        "\"a\",\"checkpoint_map\":{\"\":\"" ID "\",\"a\":\"" OTHER "\"}}}",
        "{\"checkpoint\":{\"checkpoint_map\":{\"\":\"" ID "\"}}}"};
    static const char *const bad[][2] = {
        {"[]", "/: expected an object."},
        {"{\"values\":1}", "/values: expected an object or an array."},
        {"{\"as_node\":\"\"}", "/as_node: "},
        {"{\"checkpoint_id\":\"1\"}", "/checkpoint_id: "},
        {"{\"checkpoint\":{\"checkpoint_ns\":1}}",
         "/checkpoint/checkpoint_ns: "},
        {"{\"checkpoint\":{\"checkpoint_map\":[]}}",
         "/checkpoint/checkpoint_map: expected an object."},
        {"{\"checkpoint\":{\"checkpoint_map\":{\"a\":null}}}",
         "/checkpoint/checkpoint_map/a: expected a UUID."},
        {"{\"checkpoint\":{\"checkpoint_map\":{\"a\":\"" ID "\"}}}",
         "/checkpoint_id: expected the checkpoint beside checkpoint_map"},
        {"{\"checkpoint_id\":\"" OTHER "\",\"checkpoint\":{\"checkpoint_map\":"
         "{\"\":\"" ID "\"}}}",
         "/checkpoint_id: expected the checkpoint that checkpoint_map has"},
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

/* An update at a checkpoint_map with names of this length. */
static const char *make_map(int names, int bytes, apr_pool_t *pool)
{
    const char *text = "{\"checkpoint_id\":\"" ID
                       "\",\"checkpoint\":{\"checkpoint_map\":{";

    for (int i = 0; i < names; i++) {
        text = apr_psprintf(pool, "%s%s\"%0*d\":\"" ID "\"", text, i ? "," : "",
                            bytes, i);
    }
    return apr_pstrcat(pool, text, "}}}", NULL);
}

/* An update in a namespace of this length. */
static const char *make_namespace(int bytes, apr_pool_t *pool)
{
    return apr_psprintf(pool, "{\"checkpoint\":{\"checkpoint_ns\":\"%0*d\"}}",
                        bytes, 0);
}

static void the_namespace_and_the_map_of_a_checkpoint_are_limited(void **state)
{
    assert_null(check(make_namespace(2048, *state), *state));
    assert_non_null(check(make_namespace(2049, *state), *state));
    assert_null(check(make_map(64, 512, *state), *state));
    assert_non_null(check(make_map(65, 2, *state), *state));
    assert_non_null(check(make_map(64, 513, *state), *state));
    assert_null(check(make_map(1, 2048, *state), *state));
    assert_non_null(check(make_map(1, 2049, *state), *state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_members_of_a_reading_are_checked),
        CHECK_TEST(the_members_of_an_update_are_checked),
        CHECK_TEST(the_namespace_and_the_map_of_a_checkpoint_are_limited)};

    return CHECK_RUN(tests);
}
