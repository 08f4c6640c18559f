/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/schema.c model/check.c core/ */
/* Schemas of request bodies: values on both sides of each rule. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/model/schema.h"

typedef apr_status_t (*schema_t)(const agent_fields_t **, agent_raw_t,
                                 agent_error_t **, apr_pool_t *);

static apr_status_t check_runs(const agent_fields_t **fields, agent_raw_t body,
                               agent_error_t **err, apr_pool_t *pool)
{
    const agent_fields_t *const *runs;
    int count;

    return agent_schema_runs(&runs, &count, body, err, pool);
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

static const char *check_run(const char *members, apr_pool_t *pool)
{
    return check(
        agent_schema_run,
        apr_pstrcat(pool, "{\"assistant_id\":\"agent\",", members, "}", NULL),
        pool);
}

static void a_run_needs_an_assistant(void **state)
{
    assert_null(
        check(agent_schema_run, "{\"assistant_id\":\"agent\"}", *state));
    assert_string_equal(check(agent_schema_run, "{}", *state),
                        "/assistant_id: expected a value: it is required.");
    assert_non_null(check(agent_schema_run, "{\"assistant_id\":7}", *state));
    assert_non_null(check(agent_schema_run, "{\"assistant_id\":\"\"}", *state));
    assert_non_null(check(agent_schema_run, "{\"assistant_id\":null}", *state));
}

static void a_body_is_an_object(void **state)
{
    assert_string_equal(check(agent_schema_run, "[]", *state),
                        "/: expected an object.");
    assert_non_null(check(agent_schema_thread, "null", *state));
    assert_non_null(check(agent_schema_thread, "3", *state));
    assert_null(check(agent_schema_thread, "{}", *state));
}

static void good_members_of_a_run_are_accepted(void **state)
{
    static const char *const good[] = {
        "\"input\":{\"messages\":[]}",
        "\"input\":null,\"command\":{\"resume\":1}",
        "\"multitask_strategy\":\"reject\"",
        "\"multitask_strategy\":\"rollback\"",
        "\"metadata\":{}",
        "\"metadata\":null",
        ("\"config\":{\"tags\":[\"a\"],\"recursion_limit\":25,"
         "\"configurable\":{\"x\":1}}"),
        "\"stream_mode\":\"values\"",
        "\"stream_mode\":[\"values\",\"messages-tuple\"]",
        "\"stream_mode\":[]",
        "\"interrupt_before\":\"*\"",
        "\"interrupt_after\":[\"tools\"]",
        "\"after_seconds\":0.5",
        "\"checkpoint_id\":\"018f2d6e-7c4b-7abc-9def-0123456789ab\"",
        "\"feedback_keys\":[\"a\"]",
        "\"if_not_exists\":\"create\"",
        "\"webhook\":\"https://example.com/x\"",
        "\"a_field_of_tomorrow\":[1,2]"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(check_run(good[i], *state));
    }
}

static void bad_members_of_a_run_are_named(void **state)
{
    static const char *const bad[][2] = {
        {"\"multitask_strategy\":\"maybe\"", "/multitask_strategy"},
        {"\"multitask_strategy\":1", "/multitask_strategy"},
        {"\"metadata\":[]", "/metadata"},
        {"\"metadata\":{\"\":1}", "/metadata"},
        {"\"config\":1", "/config"},
        {"\"config\":{\"tags\":[1]}", "/config/tags/0"},
        {"\"config\":{\"recursion_limit\":0}", "/config/recursion_limit"},
        {"\"config\":{\"recursion_limit\":\"5\"}", "/config/recursion_limit"},
        {"\"config\":{\"configurable\":[]}", "/config/configurable"},
        {"\"context\":\"x\"", "/context"},
        {"\"stream_mode\":\"nope\"", "/stream_mode"},
        {"\"stream_mode\":[\"values\",\"nope\"]", "/stream_mode/1"},
        {"\"interrupt_before\":\"tools\"", "/interrupt_before"},
        {"\"interrupt_after\":[3]", "/interrupt_after/0"},
        {"\"after_seconds\":-1", "/after_seconds"},
        {"\"after_seconds\":\"1\"", "/after_seconds"},
        {"\"checkpoint_id\":\"x\"", "/checkpoint_id"},
        {"\"checkpoint\":{\"checkpoint_id\":5}", "/checkpoint/checkpoint_id"},
        {"\"webhook\":\"\"", "/webhook"},
        {"\"webhook\":5", "/webhook"},
        {"\"webhook\":\"/relative\"", "/webhook"},
        {"\"webhook\":\"ftp://example.com/\"", "/webhook"},
        {"\"webhook\":\"https://me:secret@example.com/\"", "/webhook"},
        {"\"stream_subgraphs\":\"true\"", "/stream_subgraphs"},
        {"\"feedback_keys\":\"a\"", "/feedback_keys"},
        {"\"feedback_keys\":[\"a\",\"\"]", "/feedback_keys"},
        {"\"input\":{},\"command\":{}", "/command"},
        {"\"command\":[]", "/command"}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *detail = check_run(bad[i][0], *state);

        assert_non_null(detail);
        assert_memory_equal(detail, bad[i][1], strlen(bad[i][1]));
        assert_int_equal(detail[strlen(bad[i][1])], ':');
    }
}

static const char *make_metadata(int keys, int key_bytes, int value_bytes,
                                 apr_pool_t *pool)
{
    const char *text = "{\"metadata\":{";

    for (int i = 0; i < keys; i++) {
        char *key = apr_psprintf(pool, "%0*d", key_bytes, i);
        char *value = apr_psprintf(pool, "%0*d", value_bytes - 2, 0);

        text = apr_pstrcat(pool, text, i ? "," : "", "\"", key, "\":\"", value,
                           "\"", NULL);
    }
    return apr_pstrcat(pool, text, "}}", NULL);
}

static void metadata_is_bounded(void **state)
{
    assert_null(
        check(agent_schema_thread, make_metadata(64, 64, 512, *state), *state));
    assert_non_null(
        check(agent_schema_thread, make_metadata(65, 5, 5, *state), *state));
    assert_non_null(
        check(agent_schema_thread, make_metadata(1, 65, 5, *state), *state));
    assert_non_null(
        check(agent_schema_thread, make_metadata(1, 5, 513, *state), *state));
}

static void a_thread_may_have_an_id_of_the_client(void **state)
{
    assert_null(check(agent_schema_thread,
                      "{\"thread_id\":\"018F2D6E-7C4B-7ABC-9DEF-0123456789AB\","
                      "\"if_exists\":\"do_nothing\"}",
                      *state));
    assert_string_equal(
        check(agent_schema_thread, "{\"thread_id\":\"x\"}", *state),
        "/thread_id: expected a UUID.");
    assert_string_equal(
        check(agent_schema_thread, "{\"if_exists\":\"x\"}", *state),
        "/if_exists: expected raise or do_nothing.");
}

static void feedback_keys_are_bounded(void **state)
{
    const char *keys = "\"k\"";

    for (int i = 1; i < 64; i++) {
        keys = apr_pstrcat(*state, keys, ",\"k\"", NULL);
    }
    assert_null(check_run(
        apr_pstrcat(*state, "\"feedback_keys\":[", keys, "]", NULL), *state));
    assert_non_null(check_run(
        apr_pstrcat(*state, "\"feedback_keys\":[", keys, ",\"k\"]", NULL),
        *state));
    assert_null(check_run(
        apr_psprintf(*state, "\"feedback_keys\":[\"%064d\"]", 0), *state));
    assert_non_null(check_run(
        apr_psprintf(*state, "\"feedback_keys\":[\"%065d\"]", 0), *state));
}

static const char *make_array(const char *item, int count, apr_pool_t *pool)
{
    char *text = apr_pcalloc(pool, (strlen(item) + 1) * (size_t)count + 3);
    char *p = text;

    for (int i = 0; i < count; i++) {
        *p++ = i ? ',' : '[';
        p = apr_cpystrn(p, item, strlen(item) + 1);
    }
    strcpy(p, count ? "]" : "[]");
    return text;
}

static void a_batch_is_an_array_of_runs(void **state)
{
    const char *run = "{\"assistant_id\":\"agent\"}";

    assert_null(check(check_runs, make_array(run, 1, *state), *state));
    assert_null(check(check_runs, make_array(run, 1000, *state), *state));
    assert_string_equal(
        check(check_runs, make_array(run, 1001, *state), *state),
        "/: expected an array of 1 to 1000 runs.");
    assert_non_null(check(check_runs, "[]", *state));
    assert_non_null(check(check_runs, run, *state));
    assert_string_equal(
        check(check_runs, "[{\"assistant_id\":\"agent\"},null]", *state),
        "/1: expected an object.");
    assert_string_equal(
        check(check_runs,
              "[{\"assistant_id\":\"agent\",\"config\":{\"tags\":[1]}}]",
              *state),
        "/0/config/tags/0: expected a string.");
}

#define ID "\"018f2d6e-7c4b-7abc-9def-0123456789ab\""

static void a_cancel_names_a_status_or_runs_of_a_thread(void **state)
{
    static const char *const good[] = {
        "{\"status\":\"pending\"}", "{\"status\":\"all\",\"thread_id\":null}",
        "{\"thread_id\":" ID ",\"run_ids\":[" ID "," ID "]}"};
    static const char *const bad[][2] = {
        {"{}", "/:"},
        {"[]", "/:"},
        {"{\"thread_id\":" ID "}", "/:"},
        {"{\"run_ids\":[" ID "]}", "/:"},
        {"{\"status\":\"all\",\"run_ids\":[" ID "]}", "/:"},
        {"{\"status\":\"all\",\"thread_id\":" ID "}", "/:"},
        {"{\"status\":\"success\"}", "/status:"},
        {"{\"thread_id\":" ID ",\"run_ids\":[]}", "/run_ids:"},
        {"{\"thread_id\":" ID ",\"run_ids\":[" ID ",1]}", "/run_ids/1:"},
        {"{\"thread_id\":7,\"run_ids\":[" ID "]}", "/thread_id:"}};
    const char *detail;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(check(agent_schema_cancel, good[i], *state));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        detail = check(agent_schema_cancel, bad[i][0], *state);
        assert_non_null(detail);
        assert_memory_equal(detail, bad[i][1], strlen(bad[i][1]));
    }
    detail = check(agent_schema_cancel,
                   apr_pstrcat(*state, "{\"thread_id\":" ID ",\"run_ids\":",
                               make_array(ID, 1001, *state), "}", NULL),
                   *state);
    assert_string_equal(detail,
                        "/run_ids: expected an array of 1 to 1000 UUIDs.");
}

static void fields_are_found_under_escaped_names(void **state)
{
    static const char text[] =
        " { \"\\u0061ssistant_id\" : \"ag\\u0065nt\\ud83d\\ude00\\n\" ,"
        "\"multitask_strategy\":null,\"assistant_i\":[\"]}\"],"
        "\"input\" : {\"assistant_id\":\"x\"} } ";
    const agent_fields_t *fields;
    agent_error_t *err = NULL;

    assert_int_equal(
        agent_schema_run(&fields, agent_raw_read(text), &err, *state),
        APR_SUCCESS);
    assert_string_equal(agent_field_string(fields, "assistant_id", "none"),
                        "agent\xf0\x9f\x98\x80\n");
    assert_string_equal(
        agent_field_string(fields, "multitask_strategy", "none"), "none");
    assert_string_equal(agent_field_string(fields, "input", "none"), "none");
    assert_string_equal(agent_field_string(NULL, "input", "none"), "none");
    assert_int_equal(agent_raw_kind(agent_field_raw(fields, "input")),
                     AGENT_RAW_OBJECT);
    assert_int_equal(agent_field_raw(fields, "input").length,
                     strlen("{\"assistant_id\":\"x\"}"));
    assert_int_equal(agent_raw_kind(agent_field_raw(fields, "command")),
                     AGENT_RAW_NONE);
}

static void lengths_are_those_of_the_decoded_text(void **state)
{
    char text[6 * 512 + 64];
    char *p = text
        + apr_snprintf(text, sizeof(text), "{\"metadata\":{\"k\":\"");

    for (int i = 0; i < 510; i++) {
        p = apr_cpystrn(p, "\\u0061", 7);
    }
    strcpy(p, "\"}}");
    assert_null(check(agent_schema_thread, text, *state));
    strcpy(p, "b\"}}");
    assert_string_equal(check(agent_schema_thread, text, *state),
                        "/metadata/k: expected at most 512 bytes of JSON.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_run_needs_an_assistant),
        CHECK_TEST(a_body_is_an_object),
        CHECK_TEST(good_members_of_a_run_are_accepted),
        CHECK_TEST(bad_members_of_a_run_are_named),
        CHECK_TEST(metadata_is_bounded),
        CHECK_TEST(a_thread_may_have_an_id_of_the_client),
        CHECK_TEST(feedback_keys_are_bounded),
        CHECK_TEST(a_batch_is_an_array_of_runs),
        CHECK_TEST(fields_are_found_under_escaped_names),
        CHECK_TEST(lengths_are_those_of_the_decoded_text),
        CHECK_TEST(a_cancel_names_a_status_or_runs_of_a_thread)};

    return CHECK_RUN(tests);
}
