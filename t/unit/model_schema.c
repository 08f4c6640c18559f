/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/schema.c model/schema_checkpoint.c model/field.c */
/* OBJECTS: model/check.c core/ */
/* Schemas of request bodies: accepted and refused values of each member. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/model/schema.h"

#define ID       "\"018f2d6e-7c4b-7abc-9def-0123456789ab\""
#define UPPER_ID "\"018F2D6E-7C4B-7ABC-9DEF-0123456789AB\""

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
        "\"stream_mode\":[\"tools\",\"lifecycle\"]",
        "\"stream_mode\":[]",
        "\"interrupt_before\":\"*\"",
        "\"interrupt_after\":[\"tools\"]",
        "\"after_seconds\":0.5",
        "\"checkpoint_id\":\"018f2d6e-7c4b-7abc-9def-0123456789ab\"",
        "\"feedback_keys\":[\"a\"]",
        "\"if_not_exists\":\"create\"",
        "\"webhook\":\"https://example.com/x\"",
        "\"langsmith_tracer\":{\"project_name\":\"p\"}",
        "\"checkpoint_during\":false",
        "\"checkpoint_during\":false,\"durability\":\"exit\"",
        "\"checkpoint_during\":true,\"durability\":\"async\"",
        ("\"checkpoint\":{\"thread_id\":" ID ",\"checkpoint_id\":" ID
         ",\"checkpoint_ns\":\"\",\"checkpoint_map\":{ }},"
         "\"config\":{\"configurable\":{\"checkpoint_id\":" UPPER_ID "}}"),
        "\"config\":{\"configurable\":{\"checkpoint_map\":{\"\":" ID "}}}",
        "\"a_field_of_tomorrow\":[1,2]"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(check_run(good[i], *state));
    }
}

static void the_detail_names_a_bad_member_of_a_run(void **state)
{
    static const char *const bad[][2] = {
        {"\"multitask_strategy\":\"maybe\"", "/multitask_strategy"},
        {"\"multitask_strategy\":1", "/multitask_strategy"},
        {"\"metadata\":[]", "/metadata"},
        {"\"metadata\":{\"\":1}", "/metadata"},
        {"\"config\":1", "/config"},
        {"\"config\":{\"tags\":[1]}", "/config/tags/0"},
        {"\"config\":{\"recursion_limit\":0}", "/config/recursion_limit"},
        {"\"config\":{\"recursion_limit\":1.0}", "/config/recursion_limit"},
        {"\"config\":{\"recursion_limit\":10008}", "/config/recursion_limit"},
        {"\"config\":{\"recursion_limit\":\"5\"}", "/config/recursion_limit"},
        {"\"config\":{\"configurable\":[]}", "/config/configurable"},
        {"\"context\":\"x\"", "/context"},
        {"\"stream_mode\":\"nope\"", "/stream_mode"},
        {"\"stream_mode\":[\"values\",\"nope\"]", "/stream_mode/1"},
        {"\"interrupt_before\":\"tools\"", "/interrupt_before"},
        {"\"interrupt_after\":[3]", "/interrupt_after/0"},
        {"\"after_seconds\":-1", "/after_seconds"},
        {"\"after_seconds\":31536001", "/after_seconds"},
        {"\"after_seconds\":\"1\"", "/after_seconds"},
        {"\"checkpoint_id\":\"x\"", "/checkpoint_id"},
        {"\"checkpoint\":{\"checkpoint_id\":5}", "/checkpoint/checkpoint_id"},
        {"\"checkpoint\":{\"thread_id\":\"x\"}", "/checkpoint/thread_id"},
        {"\"checkpoint\":{\"checkpoint_ns\":1}", "/checkpoint/checkpoint_ns"},
        {"\"checkpoint\":{\"checkpoint_map\":{\"a\":1}}",
         "/checkpoint/checkpoint_map/a"},
        {"\"config\":{\"configurable\":{\"checkpoint_id\":\"\"}}",
         "/config/configurable/checkpoint_id"},
        {"\"config\":{\"configurable\":{\"checkpoint_ns\":[]}}",
         "/config/configurable/checkpoint_ns"},
        {("\"checkpoint_id\":" ID ",\"checkpoint\":{\"checkpoint_id\":"
          "\"018f2d6e-7c4b-7abc-9def-000000000000\"}"),
         "/checkpoint/checkpoint_id"},
        {"\"strict_resume\":1", "/strict_resume"},
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

/* An object with that number of members and bytes; bytes 0: as few as it needs.
 */
static const char *make_object(int members, int bytes, apr_pool_t *pool)
{
    const char *others = "";

    for (int i = 1; i < members; i++) {
        others = apr_psprintf(pool, "\"k%d\":0,%s", i, others);
    }
    bytes -= bytes > 0 ? (int)strlen("{\"x\":\"\"}") : 0;
    return apr_psprintf(pool, "{%s\"x\":\"%*s\"}", others, bytes, "");
}

static void configurable_is_bounded(void **state)
{
    static const int sizes[][2] = {{256, 0}, {257, 0}, {1, 65536}, {1, 65537}};
    static const char *const details[] = {NULL, "256 members", NULL,
                                          "65536 bytes of JSON"};

    for (int i = 0; i < 4; i++) {
        const char *object = make_object(sizes[i][0], sizes[i][1], *state);
        const char *detail = check_run(
            apr_psprintf(*state, "\"config\":{\"configurable\":%s}", object),
            *state);

        assert_true((detail == NULL) == (details[i] == NULL));
        if (detail != NULL) {
            assert_string_equal(
                detail,
                apr_psprintf(*state,
                             "/config/configurable: expected at most %s.",
                             details[i]));
        }
    }
}

static void checkpoint_during_agrees_with_durability(void **state)
{
    const char *during = "/checkpoint_during: expected the same as durability "
                         "says, or none.";

    assert_null(check_run("\"durability\":\"sync\",\"checkpoint_during\":true",
                          *state));
    assert_string_equal(
        check_run("\"durability\":\"sync\",\"checkpoint_during\":false",
                  *state),
        during);
    assert_string_equal(
        check_run("\"durability\":\"exit\",\"checkpoint_during\":true", *state),
        during);
    assert_string_equal(
        check_run("\"durability\":\"async\",\"checkpoint_during\":false",
                  *state),
        during);
}

static apr_status_t check_threads(const agent_fields_t **fields,
                                  agent_raw_t body, agent_error_t **err,
                                  apr_pool_t *pool)
{
    return agent_schema_threads(body, err, pool);
}

/* Not null, which is the same as absent. */
static void an_unsupported_member_may_have_its_default(void **state)
{
    static const char *const defaults[] = {"false", "\"\"", "[]",
                                           "[ ]",   "{}",   "{ }"};
    static const char *const others[] = {
        "true", "0", "5", "\"a\"", "[1]", "[[]]", "[null]", "{\"a\":null}"};

    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
        assert_null(check(check_threads,
                          apr_psprintf(*state, "{\"extract\":%s}", defaults[i]),
                          *state));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_string_equal(
            check(check_threads,
                  apr_psprintf(*state, "{\"extract\":%s}", others[i]), *state),
            "/extract: expected none: it is not supported yet.");
    }
}

/* The detail of agent_schema_endpoint() for a run with these members; NULL if
 * it is accepted. */
static const char *check_endpoint(const char *members, const char *thread_id,
                                  bool is_awaited, apr_pool_t *pool)
{
    const char *text = apr_pstrcat(pool, "{\"assistant_id\":\"agent\",",
                                   members, "}", NULL);
    const agent_fields_t *run;
    agent_error_t *err = NULL;

    assert_int_equal(agent_schema_run(&run, agent_raw_read(text), &err, pool),
                     APR_SUCCESS);
    return agent_schema_endpoint(run, thread_id, is_awaited, &err, pool)
            == APR_SUCCESS
        ? NULL
        : err->detail;
}

static void some_members_are_honoured_by_some_endpoints(void **state)
{
    const char *thread_id = "018f2d6e-7c4b-7abc-9def-0123456789ab";
    const char *other_id = "018f2d6e-7c4b-7abc-9def-000000000000";
    const char *checkpoint = "\"checkpoint\":{\"thread_id\":" UPPER_ID "}";
    const char *leaves = "\"on_disconnect\":\"cancel\"";
    const char *ends = "\"on_completion\":\"delete\"";

    assert_null(check_endpoint(checkpoint, thread_id, true, *state));
    assert_non_null(check_endpoint(checkpoint, other_id, true, *state));
    assert_null(check_endpoint(leaves, thread_id, true, *state));
    assert_non_null(check_endpoint(leaves, thread_id, false, *state));
    assert_null(check_endpoint(ends, NULL, false, *state));
    assert_non_null(check_endpoint(ends, thread_id, false, *state));
    assert_null(
        check_endpoint("\"checkpoint_id\":" ID, thread_id, true, *state));
    assert_string_equal(
        check_endpoint("\"checkpoint_id\":" ID, NULL, true, *state),
        "/checkpoint_id: expected none: a stateless run begins on a new "
        "thread.");
    assert_non_null(check_endpoint("\"checkpoint\":{\"checkpoint_ns\":\"a\"}",
                                   NULL, true, *state));
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

static void metadata_is_limited(void **state)
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

static void feedback_keys_are_limited(void **state)
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

static const char *check_assistant(int bytes, apr_pool_t *pool)
{
    return check(agent_schema_run,
                 apr_psprintf(pool, "{\"assistant_id\":\"%0*d\"}", bytes, 0),
                 pool);
}

static const char *check_stream_mode(int count, apr_pool_t *pool)
{
    return check_run(apr_pstrcat(pool, "\"stream_mode\":",
                                 make_array("\"values\"", count, pool), NULL),
                     pool);
}

static void an_assistant_has_at_most_64_bytes(void **state)
{
    assert_null(check_assistant(64, *state));
    assert_string_equal(check_assistant(65, *state),
                        "/assistant_id: expected a string of 1 to 64 bytes.");
}

static void a_run_has_at_most_64_stream_modes(void **state)
{
    assert_null(check_stream_mode(64, *state));
    assert_string_equal(check_stream_mode(65, *state),
                        "/stream_mode: expected at most 64 elements.");
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
        CHECK_TEST(the_detail_names_a_bad_member_of_a_run),
        CHECK_TEST(configurable_is_bounded),
        CHECK_TEST(checkpoint_during_agrees_with_durability),
        CHECK_TEST(an_unsupported_member_may_have_its_default),
        CHECK_TEST(some_members_are_honoured_by_some_endpoints),
        CHECK_TEST(metadata_is_limited),
        CHECK_TEST(feedback_keys_are_limited),
        CHECK_TEST(an_assistant_has_at_most_64_bytes),
        CHECK_TEST(a_run_has_at_most_64_stream_modes),
        CHECK_TEST(a_batch_is_an_array_of_runs),
        CHECK_TEST(fields_are_found_under_escaped_names),
        CHECK_TEST(lengths_are_those_of_the_decoded_text),
        CHECK_TEST(a_cancel_names_a_status_or_runs_of_a_thread)};

    return CHECK_RUN(tests);
}
