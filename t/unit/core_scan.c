/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/ */
/* Not under valgrind: it measures the memory of malloc(). */
/* The strict JSON scan: accepted and refused texts, and the pointers of errors.
 */
#include "check.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <json-c/json.h>

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

static void invalid_json_is_refused(void **state)
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

static void text_that_is_not_utf8_is_refused(void **state)
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

/* A string of 24 letters and n, one of which is another byte. */
static void a_string_stops_at_the_same_byte_wherever_it_is(void **state)
{
    for (unsigned byte = 1; byte < 256; byte++) {
        for (size_t i = 1; i <= 24; i++) {
            char text[] = "\"nnnnnnnnnnnnnnnnnnnnnnnnn\"";
            agent_scan_t scan = {.pool = *state};
            agent_scan_code_t code = byte < 0x20 || byte == '"'
                ? AGENT_SCAN_SYNTAX
                : byte < 0x80 ? AGENT_SCAN_OK
                              : AGENT_SCAN_UTF8;

            text[i] = (char)byte;
            agent_scan_json(&scan, text, strlen(text));
            assert_int_equal(scan.code, code);
            if (code == AGENT_SCAN_SYNTAX) {
                assert_int_equal(scan.offset, byte == '"' ? i + 1 : i);
            }
        }
    }
}

static void values_that_cannot_be_stored_are_named_with_their_pointer(
    void **state)
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

static void a_request_within_its_limits_is_valid_as_a_part_of_a_record(
    void **state)
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

/* The pointer of the duplicate key; NULL if there is none. */
static const char *find_duplicate(const char *text, apr_pool_t *pool)
{
    agent_scan_t *state = apr_pcalloc(pool, sizeof(*state));

    state->pool = pool;
    if (agent_scan_json(state, text, strlen(text))) {
        return NULL;
    }
    assert_int_equal(state->code, AGENT_SCAN_DUPLICATE);
    return agent_scan_pointer(state, pool);
}

static void a_duplicate_key_is_named(void **state)
{
    static const char *const bad[][2] = {
        {"{\"a\":1,\"a\":2}", "/a"},
        {"{\"\":1,\"b\":3,\"\":2}", "/"},
        {"[{\"x\":{\"k\":{},\"z\":[1],\"k\":[]}}]", "/0/x/k"},
        {"{\"a\":1,\"\\u0061\":2}", "/\\u0061"},
        {"{\"\\n\":1,\"\\u000a\":2}", "/\\u000a"},
        {"{\"\\/\":1,\"/\":2}", "/~1"},
        {"{\"\xc3\xa9\":1,\"\\u00e9\":2}", "/\\u00e9"},
        {"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", "/\xf0\x9f\x98\x80"}};
    static const char *const good[] = {
        "{\"a\":{\"a\":[{\"a\":1},{\"a\":2}]},\"b\":{\"a\":3}}",
        "{\"a\":1,\"A\":2,\"\":3,\" \":4,\"aa\":5}",
        "{\"\\u0061a\":1,\"\\u0061b\":2,\"\\u00e9\":3,\"\\u00ea\":4}"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_string_equal(find_duplicate(bad[i][0], *state), bad[i][1]);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(find_duplicate(good[i], *state));
    }
}

/* An object whose keys have that length, and after them the key `last`. */
static const char *make_object(int members, int length, const char *last,
                               apr_pool_t *pool)
{
    size_t size = (size_t)members * ((size_t)length + 8) + strlen(last) + 32;
    char *text = apr_palloc(pool, size);
    char *p = text;

    *p++ = '{';
    for (int i = 0; i < members; i++) {
        p += apr_snprintf(p, size - (size_t)(p - text), "\"%0*d\":0,", length,
                          i);
    }
    apr_snprintf(p, size - (size_t)(p - text), "\"%s\":0}", last);
    return text;
}

static void a_duplicate_key_is_found_among_many(void **state)
{
    static const int members[] = {15, 16, 17, 100, 600, 5000, 100000};

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        assert_null(
            find_duplicate(make_object(members[i], 6, "none", *state), *state));
        assert_string_equal(
            find_duplicate(make_object(members[i], 6, "000007", *state),
                           *state),
            "/000007");
        assert_string_equal(
            find_duplicate(
                make_object(members[i], 6, "0000\\u0030\\u0037", *state),
                *state),
            "/0000\\u0030\\u0037");
    }
    /* Longer than the blocks in which a key is hashed. */
    assert_null(find_duplicate(make_object(20, 1000, "none", *state), *state));
    assert_non_null(find_duplicate(
        make_object(20, 1000, apr_psprintf(*state, "\\u0030%0999d", 5), *state),
        *state));
}

static size_t weigh(const char *text, apr_pool_t *pool)
{
    agent_scan_t *state = apr_pcalloc(pool, sizeof(*state));

    assert_true(agent_scan_json(state, text, strlen(text)));
    return state->weight;
}

static void a_text_that_would_take_too_much_memory_is_refused(void **state)
{
    static const char text[] = "{\"a\":[{},[],null,1,\"xyz\"]}";
    size_t weight = 2 * AGENT_SCAN_WEIGHT_OBJECT + 2 * AGENT_SCAN_WEIGHT_ARRAY
        + AGENT_SCAN_WEIGHT_MEMBER + 1 + 5 * AGENT_SCAN_WEIGHT_ELEMENT
        + 2 * AGENT_SCAN_WEIGHT_SCALAR + 1 + 5;
    agent_scan_t *scanner = apr_pcalloc(*state, sizeof(*scanner));

    assert_int_equal(weigh(text, *state), weight);
    scanner->max_weight = weight;
    assert_true(agent_scan_json(scanner, text, strlen(text)));
    memset(scanner, 0, sizeof(*scanner));
    scanner->max_weight = weight - 1;
    assert_false(agent_scan_json(scanner, text, strlen(text)));
    assert_int_equal(scanner->code, AGENT_SCAN_TOO_HEAVY);
    assert_string_equal(agent_scan_pointer(scanner, *state), "/a/4");
}

/* A sanitizer's malloc has no mallinfo2(). */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static const char *make_list(const char *item, int count, apr_pool_t *pool)
{
    size_t length = strlen(item);
    char *text = apr_palloc(pool, (size_t)count * (length + 1) + 3);
    char *p = text;

    for (int i = 0; i < count; i++) {
        *p++ = i == 0 ? '[' : ',';
        memcpy(p, item, length);
        p += length;
    }
    memcpy(p, "]", 2);
    return text;
}

static size_t measure_tree(const char *text)
{
    struct mallinfo2 before = mallinfo2();
    json_tokener *tokener = json_tokener_new_ex(AGENT_SCAN_DEPTH + 2);
    json_object *tree = json_tokener_parse_ex(tokener, text,
                                              (int)strlen(text) + 1);
    struct mallinfo2 after;

    json_tokener_free(tokener);
    after = mallinfo2();
    json_object_put(tree);
    return after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
}

static void the_weight_estimates_the_memory_of_json_c(void **state)
{
    static const char *const items[] = {
        "{}",
        "[]",
        "[[]]",
        "0",
        "-1.5",
        "true",
        "\"\"",
        "[12.345678,45.678901]",
        "\"text of some thirty bytes, say\"",
        "{\"a\":null}",
        "{\"role\":\"user\",\"content\":\"What is the weather like?\"}",
        ("{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":6,\"h\":7,"
         "\"i\":8,\"j\":9,\"k\":10,\"l\":11}")};

    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        const char *text = make_list(items[i], 20000, *state);
        size_t weight = weigh(text, *state);
        size_t tree = measure_tree(text);

        assert_true(tree < weight + weight / 4);
        assert_true(weight < 2 * tree);
    }
    assert_true(measure_tree(make_object(90000, 6, "none", *state))
                < weigh(make_object(90000, 6, "none", *state), *state) * 5 / 4);
}
#define CHECK_WEIGHT CHECK_TEST(the_weight_estimates_the_memory_of_json_c),
#else
#define CHECK_WEIGHT
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(json_is_accepted),
        CHECK_TEST(invalid_json_is_refused),
        CHECK_TEST(text_that_is_not_utf8_is_refused),
        CHECK_TEST(a_string_stops_at_the_same_byte_wherever_it_is),
        CHECK_TEST(values_that_cannot_be_stored_are_named_with_their_pointer),
        CHECK_TEST(nesting_stops_at_128_levels),
        CHECK_TEST(a_request_within_its_limits_is_valid_as_a_part_of_a_record),
        CHECK_TEST(a_duplicate_key_is_named),
        CHECK_TEST(a_duplicate_key_is_found_among_many),
        CHECK_WEIGHT CHECK_TEST(
            a_text_that_would_take_too_much_memory_is_refused)};

    return CHECK_RUN(tests);
}
