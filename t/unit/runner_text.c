/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/base/text.c runners/builtin/base/surrogates.c */
/* OBJECTS: runners/builtin/base/clean.c core/ */
/* Cleaning text, joining surrogates, words. */
#include "check.h"

#include <stdbool.h>
#include <string.h>

#include <apr_strings.h>

#include "core/scan.h"
#include "runners/builtin/base/clean.h"
#include "runners/builtin/base/surrogates.h"
#include "runners/builtin/base/text.h"

#define BAD "\xef\xbf\xbd"

static void invalid_utf8_becomes_the_replacement_character(void **state)
{
    static const char *const rows[][2] = {
        {"plain", "plain"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xf0\x9f\x8c\x8d", "\xf0\x9f\x8c\x8d"},
        {"a\xff"
         "b",
         "a" BAD "b"},
        {"a\xc3", "a" BAD},
        {"a\xc3"
         "b",
         "a" BAD "b"},
        {"\xe2\x82", BAD BAD},
        {"\xc0\xaf", BAD BAD},
        {"\xe0\x80\xaf", BAD BAD BAD},
        {"\xed\xa0\x80", BAD BAD BAD},
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD},
        {"\xf5\x80\x80\x80", BAD BAD BAD BAD},
        {"\\u0000", "\\u0000"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t length;
        const char *text = runner_clean_text(rows[i][0], strlen(rows[i][0]),
                                             &length, *state);

        assert_string_equal(text, rows[i][1]);
        assert_int_equal(length, strlen(rows[i][1]));
    }
    assert_string_equal(runner_clean_text("a\0b", 3, NULL, *state),
                        "a" BAD "b");
}

static void escapes_that_cannot_be_stored_are_replaced_in_json(void **state)
{
    static const char *const rows[][2] = {
        {"\"\\u0000\"", "\"\\ufffd\""},
        {"\"\\\\u0000\"", "\"\\\\u0000\""},
        {"\"\\\\\\u0000\"", "\"\\\\\\ufffd\""},
        {"\"\\ud83c\\udf0d\"", "\"\\ud83c\\udf0d\""},
        {"\"\\uD83C\\uDF0D\"", "\"\\uD83C\\uDF0D\""},
        {"\"\\ud83c\"", "\"\\ufffd\""},
        {"\"\\udf0d\\ud83c\"", "\"\\ufffd\\ufffd\""},
        {"\"\\ud83c\\ud83c\\udf0d\"", "\"\\ufffd\\ud83c\\udf0d\""},
        {"\"\\ud83cx\\udf0d\"", "\"\\ufffdx\\ufffd\""},
        {"\"\\ud83c\\\"", "\"\\ufffd\\\""},
        {"\"\\u00", "\"\\u00"},
        {"\"\\", "\"\\"},
        {"\"\\\xc3\xbc\"", "\"\\\xc3\xbc\""},
        {"\"\\\xff\"", "\"\\" BAD "\""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(runner_clean_json(rows[i][0], strlen(rows[i][0]),
                                              false, NULL, *state),
                            rows[i][1]);
    }
}

static bool is_accepted(const char *text, size_t length, apr_pool_t *pool)
{
    agent_scan_t *scan = apr_pcalloc(pool, sizeof(*scan));

    return agent_scan_json(scan, text, length);
}

/* A cleaned string of any bytes either passes the scan or is not JSON; the scan
 * never refuses its characters. */
static void cleaned_json_passes_the_scan(void **state)
{
    static const char alphabet[] = "\\ud8cf0\"\xff\xc3\xbc\xed\xa0 \0";
    unsigned seed = 1;

    for (int round = 0; round < 20000; round++) {
        char text[24] = "\"";
        size_t length = 1 + (size_t)round % 20;
        size_t cleaned_length;
        const char *cleaned;
        agent_scan_t scan;

        for (size_t i = 1; i <= length; i++) {
            seed = seed * 1103515245 + 12345;
            text[i] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
        }
        text[length + 1] = '"';
        cleaned = runner_clean_json(text, length + 2, round % 2 == 0,
                                    &cleaned_length, *state);
        memset(&scan, 0, sizeof(scan));
        agent_scan_json(&scan, cleaned, cleaned_length);
        assert_true(scan.code == AGENT_SCAN_OK
                    || scan.code == AGENT_SCAN_SYNTAX);
        apr_pool_clear(*state);
    }
    assert_true(is_accepted("\"x\"", 3, *state));
}

/* Joins the texts, one piece each. */
static const char *join(const char *const *texts, apr_pool_t *pool)
{
    const char *joined = "";
    unsigned pending = 0;

    for (; *texts != NULL; texts++) {
        size_t length;
        const char *text = runner_clean_json(*texts, strlen(*texts), true,
                                             &length, pool);

        text = runner_surrogates_join(&pending, text, &length, pool);
        assert_int_equal(strlen(text), length);
        joined = apr_pstrcat(pool, joined, text, NULL);
    }
    return apr_pstrcat(pool, joined, pending ? "..." : "", NULL);
}

static void split_surrogate_pairs_are_joined(void **state)
{
    static const char *const rows[][5] = {
        {"a\\ud83c", "\\udf0d b", NULL, "a\xf0\x9f\x8c\x8d b"},
        {"\\ud83c", "", "\\udf0d", NULL, "\xf0\x9f\x8c\x8d"},
        {"\\ud800", "\\udc00", NULL, "\xf0\x90\x80\x80"},
        {"\\udbff", "\\udfff", NULL, "\xf4\x8f\xbf\xbf"},
        {"\\ud83c", "x", NULL, BAD "x"},
        {"\\udf0d", "x", NULL, BAD "x"},
        {"\\ud83c", "\\ud83c", "\\udf0d", NULL, BAD "\xf0\x9f\x8c\x8d"},
        {"a\\ud83c", NULL, "a..."},
        {"\xf4\x8f\x9f\xbf", NULL, "\xf4\x8f\x9f\xbf"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int last = 0;

        while (rows[i][last] != NULL) {
            last++;
        }
        assert_string_equal(join(rows[i], *state), rows[i][last + 1]);
    }
}

static void words_concatenate_to_the_text(void **state)
{
    static const char *const texts[] = {
        "", " ", "a", " a", "a ", " a  b\n c ", "gr\xc3\xbc\xc3\x9f dich"};
    static const int counts[] = {0, 0, 1, 1, 1, 3, 2};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *rest = texts[i];
        int pieces = 0;

        for (; *rest != '\0'; rest += runner_text_measure_word(rest)) {
            assert_true(runner_text_measure_word(rest) > 0);
            pieces++;
        }
        assert_int_equal(runner_text_count_words(texts[i]), counts[i]);
        assert_int_equal(pieces, counts[i] ? counts[i] : *texts[i] != '\0');
    }
    assert_int_equal(runner_text_count_words(NULL), 0);
}

/* Each byte at each place of a text that is read eight bytes at once. */
static void words_are_counted_at_any_place(void **state)
{
    char text[] = "a b\tc d\ne f\x89\xa0g h\x0ei\x08\x0bj";
    size_t length = strlen(text);

    (void)state;
    for (size_t place = 0; place < length; place++) {
        char old = text[place];

        for (int byte = 1; byte < 256; byte++) {
            int count = 0;

            text[place] = (char)byte;
            for (size_t i = 0; i < length; i++) {
                count += strchr(" \t\n\v\f\r", text[i]) == NULL
                    && (i == 0 || strchr(" \t\n\v\f\r", text[i - 1]) != NULL);
            }
            assert_int_equal(runner_text_count_words(text), count);
        }
        text[place] = old;
    }
}

static void a_long_text_is_cut_between_characters(void **state)
{
    assert_string_equal(runner_text_shorten("abc", 3, *state), "abc");
    assert_string_equal(runner_text_shorten("abcd", 3, *state), "abc...");
    assert_string_equal(runner_text_shorten("ab\xc3\xbc", 3, *state), "ab...");
    assert_string_equal(runner_text_shorten("\xf0\x9f\x8c\x8d", 3, *state),
                        "...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(invalid_utf8_becomes_the_replacement_character),
        CHECK_TEST(escapes_that_cannot_be_stored_are_replaced_in_json),
        CHECK_TEST(cleaned_json_passes_the_scan),
        CHECK_TEST(split_surrogate_pairs_are_joined),
        CHECK_TEST(words_concatenate_to_the_text),
        CHECK_TEST(words_are_counted_at_any_place),
        CHECK_TEST(a_long_text_is_cut_between_characters),
    };

    return CHECK_RUN(tests);
}
