/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/schema_store.c model/field.c model/check.c core/ */
/* Schemas of the bodies of the store. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/core/json.h"
#include "../../mod_agent/model/schema.h"

/* The detail of the error; NULL if the body is accepted. */
static const char *check(agent_store_body_t kind, const char *text,
                         apr_pool_t *pool)
{
    agent_error_t *err = NULL;

    assert_int_equal(agent_json_scan_request(text, strlen(text), &err, pool),
                     APR_SUCCESS);
    if (agent_schema_store(kind, agent_raw_read(text), &err, pool)
        == APR_SUCCESS) {
        return NULL;
    }
    assert_int_equal(err->id, AGENT_E_INVALID);
    return err->detail;
}

/* A namespace of count labels, each of bytes letters. */
static const char *make_labels(int count, int bytes, apr_pool_t *pool)
{
    char *label = apr_pcalloc(pool, (apr_size_t)bytes + 1);
    const char *labels = "";

    memset(label, 'a', (size_t)bytes);
    /* Bounded: 33. */
    for (int i = 0; i < count; i++) {
        labels = apr_pstrcat(pool, labels, i > 0 ? "," : "", "\"", label, "\"",
                             NULL);
    }
    return labels;
}

static const char *check_labels(const char *labels, apr_pool_t *pool)
{
    return check(
        AGENT_STORE_DELETE,
        apr_pstrcat(pool, "{\"namespace\":[", labels, "],\"key\":\"k\"}", NULL),
        pool);
}

static void an_item_needs_a_namespace_and_a_key(void **state)
{
    assert_null(check_labels("\"a\",\"b c\"", *state));
    assert_string_equal(check(AGENT_STORE_PUT, "{}", *state),
                        "/namespace: expected a value: it is required.");
    assert_string_equal(
        check(AGENT_STORE_DELETE, "{\"namespace\":[\"a\"]}", *state),
        "/key: expected a value: it is required.");
    assert_string_equal(check(AGENT_STORE_DELETE,
                              "{\"namespace\":[\"a\"],\"key\":\"\"}", *state),
                        "/key: expected a string of 1 to 1024 bytes.");
    assert_string_equal(check_labels("", *state),
                        "/namespace: expected an array of 1 to 32 labels.");
    assert_string_equal(check(AGENT_STORE_DELETE,
                              "{\"namespace\":\"a\",\"key\":\"k\"}", *state),
                        "/namespace: expected an array of labels.");
}

static void a_label_is_not_empty_and_has_no_period(void **state)
{
    static const char *const wrong[] = {"\"a\",\"\"", "\"a\",\"b.c\"",
                                        "\"a\",\"b\\u002ec\"", "\"a\",1"};

    for (int i = 0; i < 4; i++) {
        assert_string_equal(check_labels(wrong[i], *state),
                            "/namespace/1: expected a label: a string that is "
                            "not empty and contains no period.");
    }
}

static void a_namespace_is_limited(void **state)
{
    static const char expected[] = "/namespace: expected at most 32 labels, of "
                                   "1024 bytes together.";

    assert_null(check_labels(make_labels(32, 32, *state), *state));
    assert_string_equal(check_labels(make_labels(33, 1, *state), *state),
                        expected);
    assert_null(check_labels(make_labels(1, 1024, *state), *state));
    assert_string_equal(check_labels(make_labels(2, 513, *state), *state),
                        expected);
}

static const char *check_put(const char *members, apr_pool_t *pool)
{
    return check(AGENT_STORE_PUT,
                 apr_pstrcat(pool, "{\"namespace\":[\"a\"],\"key\":\"k\",",
                             members, "}", NULL),
                 pool);
}

static void a_value_is_an_object_of_a_mebibyte(void **state)
{
    static const char expected[] = "/value: expected an object of at most "
                                   "1048576 bytes.";
    char *text = apr_pcalloc(*state, 1048576 + 1);

    memset(text, ' ', 1048576);
    assert_null(check_put(
        apr_pstrcat(*state, "\"value\":{", text + 2, "}", NULL), *state));
    assert_string_equal(
        check_put(apr_pstrcat(*state, "\"value\":{", text + 1, "}", NULL),
                  *state),
        expected);
    assert_string_equal(check_put("\"value\":[]", *state), expected);
    assert_string_equal(check_put("\"value\":null", *state),
                        "/value: expected a value: it is required.");
}

static void index_and_ttl_are_checked(void **state)
{
    assert_null(check_put("\"value\":{},\"index\":null,\"ttl\":null", *state));
    assert_null(check_put("\"value\":{},\"index\":false,\"ttl\":0.5", *state));
    assert_null(
        check_put("\"value\":{},\"index\":[\"a\"],\"ttl\":5256000", *state));
    assert_string_equal(check_put("\"value\":{},\"index\":true", *state),
                        "/index: expected an array of strings.");
    assert_string_equal(
        check_put("\"value\":{},\"ttl\":0", *state),
        "/ttl: expected minutes, a number from 0.01 to 5256000 (ten years).");
}

static void a_filter_has_values_and_operators(void **state)
{
    static const char expected[] = "/filter/a: expected the operators $eq, "
                                   "$ne, $gt, $gte, $lt, $lte only.";

    assert_null(check(AGENT_STORE_SEARCH,
                      "{\"namespace_prefix\":[],\"filter\":{\"a\":1,\"b\":{"
                      "\"c\":1},\"d\":{\"$gt\":1,\"$lte\":2},\"e\":{}}}",
                      *state));
    assert_string_equal(
        check(AGENT_STORE_SEARCH, "{\"filter\":{\"a\":{\"$in\":[1]}}}", *state),
        expected);
    assert_string_equal(check(AGENT_STORE_SEARCH,
                              "{\"filter\":{\"a\":{\"$gt\":1,\"b\":1}}}",
                              *state),
                        expected);
    assert_string_equal(check(AGENT_STORE_SEARCH, "{\"filter\":[]}", *state),
                        "/filter: expected an object of at most 16384 bytes.");
}

/* A filter of count members with one operator each. */
static const char *check_conditions(int count, apr_pool_t *pool)
{
    const char *filter = "";

    /* Bounded: 33. */
    for (int i = 0; i < count; i++) {
        filter = apr_psprintf(pool, "%s%s\"m%d\":{\"$gt\":1}", filter,
                              i > 0 ? "," : "", i);
    }
    return check(AGENT_STORE_SEARCH,
                 apr_psprintf(pool, "{\"filter\":{%s}}", filter), pool);
}

static void a_filter_is_limited(void **state)
{
    char *text = apr_pcalloc(*state, 16384 + 1);

    assert_null(check_conditions(32, *state));
    assert_string_equal(check_conditions(33, *state),
                        "/filter: expected at most 32 conditions.");
    memset(text, ' ', 16384);
    assert_null(check(
        AGENT_STORE_SEARCH,
        apr_pstrcat(*state, "{\"filter\":{", text + 2, "}}", NULL), *state));
    assert_non_null(check(
        AGENT_STORE_SEARCH,
        apr_pstrcat(*state, "{\"filter\":{", text + 1, "}}", NULL), *state));
}

static void a_search_and_a_list_select_a_part(void **state)
{
    assert_null(check(AGENT_STORE_SEARCH, "{}", *state));
    assert_null(check(AGENT_STORE_LIST,
                      "{\"prefix\":[\"*\"],\"suffix\":null,\"max_depth\":1,"
                      "\"limit\":1000,\"offset\":0}",
                      *state));
    assert_string_equal(check(AGENT_STORE_SEARCH, "{\"limit\":1001}", *state),
                        "/limit: expected a number from 1 to 1000.");
    assert_string_equal(check(AGENT_STORE_LIST, "{\"offset\":-1}", *state),
                        "/offset: expected a number from 0 to 2147480000.");
    assert_string_equal(check(AGENT_STORE_LIST, "{\"max_depth\":0}", *state),
                        "/max_depth: expected a number from 1 to 1000.");
    assert_string_equal(
        check(AGENT_STORE_LIST, "{\"suffix\":[\"a.b\"]}", *state),
        "/suffix/0: expected a label: a string that is not empty and contains "
        "no period.");
}

static void labels_are_joined_by_periods(void **state)
{
    char *labels = apr_pcalloc(*state, 1026);

    assert_true(agent_schema_is_namespace("a"));
    assert_true(agent_schema_is_namespace("a.b c"));
    assert_false(agent_schema_is_namespace(""));
    assert_false(agent_schema_is_namespace("a."));
    assert_false(agent_schema_is_namespace(".a"));
    assert_false(agent_schema_is_namespace("a..b"));
    memset(labels, 'a', 1025);
    assert_false(agent_schema_is_namespace(labels));
    assert_true(agent_schema_is_namespace(labels + 1));
    assert_false(agent_schema_is_item_key(labels));
    assert_true(agent_schema_is_item_key(labels + 1));
    assert_false(agent_schema_is_item_key(""));
    for (int i = 1; i < 64; i += 2) {
        labels[i] = '.';
    }
    labels[65] = '\0';
    assert_false(agent_schema_is_namespace(labels));
    labels[63] = '\0';
    assert_true(agent_schema_is_namespace(labels));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(an_item_needs_a_namespace_and_a_key),
        CHECK_TEST(a_label_is_not_empty_and_has_no_period),
        CHECK_TEST(a_namespace_is_limited),
        CHECK_TEST(a_value_is_an_object_of_a_mebibyte),
        CHECK_TEST(index_and_ttl_are_checked),
        CHECK_TEST(a_filter_has_values_and_operators),
        CHECK_TEST(a_filter_is_limited),
        CHECK_TEST(a_search_and_a_list_select_a_part),
        CHECK_TEST(labels_are_joined_by_periods),
    };

    return CHECK_RUN(tests);
}
