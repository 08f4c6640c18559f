/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/scan.c */
/* The strict JSON scan: what passes, what does not, and where it stopped. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "../../mod_agent/core/scan.h"

typedef struct sample_t {
    const char *text;
    agent_scan_code_t code;
    const char *pointer;
} sample_t;

static agent_scan_code_t scan(const char *text, const char **pointer,
                              apr_pool_t *pool)
{
    agent_scan_t *state = apr_pcalloc(pool, sizeof(*state));
    bool good = agent_scan_json(state, text, strlen(text));

    assert_int_equal(good, state->code == AGENT_SCAN_OK);
    *pointer = agent_scan_pointer(state, pool);
    return state->code;
}

static void check_samples(const sample_t *samples, size_t count, void **state)
{
    for (size_t i = 0; i < count; i++) {
        const char *pointer;

        assert_int_equal(scan(samples[i].text, &pointer, *state),
                         samples[i].code);
        if (samples[i].pointer != NULL) {
            assert_string_equal(pointer, samples[i].pointer);
        }
    }
}

#define CHECK(samples)                                                         \
    check_samples(samples, sizeof(samples) / sizeof(samples[0]), state)

static void json_is_accepted(void **state)
{
    static const sample_t samples[] = {
        {"{}", AGENT_SCAN_OK, NULL},
        {" [ ] ", AGENT_SCAN_OK, NULL},
        {"null", AGENT_SCAN_OK, NULL},
        {"0", AGENT_SCAN_OK, NULL},
        {"-0.5e+10", AGENT_SCAN_OK, NULL},
        {"1E308", AGENT_SCAN_OK, NULL},
        {"\"\"", AGENT_SCAN_OK, NULL},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", AGENT_SCAN_OK, NULL},
        {"\"\\ud83d\\ude00\"", AGENT_SCAN_OK, NULL},
        {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", AGENT_SCAN_OK, NULL},
        {"[1,[2,{\"a\":[{}]}],true,false]", AGENT_SCAN_OK, NULL},
        {"{\"a\":{\"b\":1},\"c\":[]}\r\n\t ", AGENT_SCAN_OK, NULL}};

    CHECK(samples);
}

static void what_is_not_json_is_refused(void **state)
{
    static const sample_t samples[] = {
        {"", AGENT_SCAN_SYNTAX, NULL},
        {"  ", AGENT_SCAN_SYNTAX, NULL},
        {"{", AGENT_SCAN_SYNTAX, NULL},
        {"}", AGENT_SCAN_SYNTAX, NULL},
        {"[1,]", AGENT_SCAN_SYNTAX, NULL},
        {"[,1]", AGENT_SCAN_SYNTAX, NULL},
        {"[1 2]", AGENT_SCAN_SYNTAX, NULL},
        {"{\"a\"}", AGENT_SCAN_SYNTAX, NULL},
        {"{\"a\":}", AGENT_SCAN_SYNTAX, NULL},
        {"{\"a\":1,}", AGENT_SCAN_SYNTAX, NULL},
        {"{a:1}", AGENT_SCAN_SYNTAX, NULL},
        {"{'a':1}", AGENT_SCAN_SYNTAX, NULL},
        {"[}", AGENT_SCAN_SYNTAX, NULL},
        {"{]", AGENT_SCAN_SYNTAX, NULL},
        {"{}{}", AGENT_SCAN_SYNTAX, NULL},
        {"1 1", AGENT_SCAN_SYNTAX, NULL},
        {"01", AGENT_SCAN_SYNTAX, NULL},
        {"+1", AGENT_SCAN_SYNTAX, NULL},
        {".5", AGENT_SCAN_SYNTAX, NULL},
        {"1.", AGENT_SCAN_SYNTAX, NULL},
        {"1e", AGENT_SCAN_SYNTAX, NULL},
        {"-", AGENT_SCAN_SYNTAX, NULL},
        {"NaN", AGENT_SCAN_SYNTAX, NULL},
        {"Infinity", AGENT_SCAN_SYNTAX, NULL},
        {"TRUE", AGENT_SCAN_SYNTAX, NULL},
        {"nul", AGENT_SCAN_SYNTAX, NULL},
        {"\"a", AGENT_SCAN_SYNTAX, NULL},
        {"\"a\tb\"", AGENT_SCAN_SYNTAX, NULL},
        {"\"a\nb\"", AGENT_SCAN_SYNTAX, NULL},
        {"\"\\x41\"", AGENT_SCAN_SYNTAX, NULL},
        {"\"\\u12g4\"", AGENT_SCAN_SYNTAX, NULL},
        {"\"\\u12", AGENT_SCAN_SYNTAX, NULL},
        {"// a\n1", AGENT_SCAN_SYNTAX, NULL},
        {"/* a */1", AGENT_SCAN_SYNTAX, NULL},
        {"\xef\xbb\xbf{}", AGENT_SCAN_SYNTAX, NULL}};

    CHECK(samples);
}

static void what_is_not_utf8_is_refused(void **state)
{
    static const sample_t samples[] = {
        {"\"\xff\"", AGENT_SCAN_UTF8, NULL},
        {"\"\x80\"", AGENT_SCAN_UTF8, NULL},
        {"\"\xc3\"", AGENT_SCAN_UTF8, NULL},
        {"\"\xc0\xaf\"", AGENT_SCAN_UTF8, NULL},
        {"\"\xe0\x80\xaf\"", AGENT_SCAN_UTF8, NULL},
        {"\"\xed\xa0\x80\"", AGENT_SCAN_UTF8, NULL},
        {"\"\xf0\x80\x80\xaf\"", AGENT_SCAN_UTF8, NULL},
        {"\"\xf4\x90\x80\x80\"", AGENT_SCAN_UTF8, NULL},
        {"{\"\xfe\":1}", AGENT_SCAN_UTF8, NULL}};

    CHECK(samples);
}

static void what_cannot_be_stored_is_named_with_its_place(void **state)
{
    static const sample_t samples[] = {
        {"{\"a\":[1,{\"b/c~\":\"x\\u0000\"}]}", AGENT_SCAN_NUL, "/a/1/b~1c~0"},
        {"{\"a\\u0000b\":1}", AGENT_SCAN_NUL, ""},
        {"[\"\\ud800\"]", AGENT_SCAN_SURROGATE, "/0"},
        {"[1,\"\\udc00\"]", AGENT_SCAN_SURROGATE, "/1"},
        {"[\"\\ud800\\u0041\"]", AGENT_SCAN_SURROGATE, "/0"},
        {"{\"n\":1e309}", AGENT_SCAN_NUMBER, "/n"},
        {"{\"n\":1e131071}", AGENT_SCAN_NUMBER, "/n"},
        {"{\"n\":1e99999999999999999999}", AGENT_SCAN_NUMBER, "/n"},
        {"{\"n\":1e-309}", AGENT_SCAN_NUMBER, "/n"},
        {"[0,12345678901234567890123456789012345678901e0]", AGENT_SCAN_NUMBER,
         "/1"}};

    CHECK(samples);
}

static void nesting_stops_at_128_levels(void **state)
{
    char text[2 * AGENT_SCAN_DEPTH + 3];
    const char *pointer;

    memset(text, '[', AGENT_SCAN_DEPTH);
    memset(text + AGENT_SCAN_DEPTH, ']', AGENT_SCAN_DEPTH);
    text[2 * AGENT_SCAN_DEPTH] = '\0';
    assert_int_equal(scan(text, &pointer, *state), AGENT_SCAN_OK);
    memset(text, '[', AGENT_SCAN_DEPTH + 1);
    assert_int_equal(scan(text, &pointer, *state), AGENT_SCAN_TOO_DEEP);
}

static void a_request_is_so_narrow_that_what_is_made_of_it_passes(void **state)
{
    agent_scan_t *scanner = apr_pcalloc(*state, sizeof(*scanner));
    char text[AGENT_SCAN_PLAIN_DIGITS + 2] = "";
    const char *pointer;

    memset(text, '9', AGENT_SCAN_PLAIN_DIGITS);
    assert_int_equal(scan(text, &pointer, *state), AGENT_SCAN_OK);
    text[AGENT_SCAN_PLAIN_DIGITS] = '9';
    assert_int_equal(scan(text, &pointer, *state), AGENT_SCAN_NUMBER);

    scanner->is_request = true;
    assert_false(agent_scan_json(scanner, text, AGENT_SCAN_DIGITS + 1));
    assert_int_equal(scanner->code, AGENT_SCAN_NUMBER);
    memset(scanner, 0, sizeof(*scanner));
    scanner->is_request = true;
    assert_true(agent_scan_json(scanner, text, AGENT_SCAN_DIGITS));

    memset(text, '[', AGENT_SCAN_REQUEST_DEPTH + 1);
    assert_false(agent_scan_json(scanner, text, AGENT_SCAN_REQUEST_DEPTH + 1));
    assert_int_equal(scanner->code, AGENT_SCAN_TOO_DEEP);
    assert_int_equal(scanner->depth, AGENT_SCAN_REQUEST_DEPTH);
}

static void keys_are_counted_by_object_in_the_order_they_open(void **state)
{
    static const char text[] = "{\"a\":{\"b\":1,\"c\":2},\"d\":[{},{\"e\":0}]}";
    static const size_t expected[] = {2, 2, 0, 1};
    agent_scan_t *scanner = apr_pcalloc(*state, sizeof(*scanner));

    scanner->key_counts = apr_array_make(*state, 4, sizeof(size_t));
    assert_true(agent_scan_json(scanner, text, strlen(text)));
    assert_int_equal(scanner->key_counts->nelts, 4);
    assert_memory_equal(scanner->key_counts->elts, expected, sizeof(expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(json_is_accepted),
        CHECK_TEST(what_is_not_json_is_refused),
        CHECK_TEST(what_is_not_utf8_is_refused),
        CHECK_TEST(what_cannot_be_stored_is_named_with_its_place),
        CHECK_TEST(nesting_stops_at_128_levels),
        CHECK_TEST(a_request_is_so_narrow_that_what_is_made_of_it_passes),
        CHECK_TEST(keys_are_counted_by_object_in_the_order_they_open)};

    return CHECK_RUN(tests);
}
