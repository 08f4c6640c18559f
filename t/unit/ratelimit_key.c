/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/key.c */
/* The rate-limit keys of keys.def. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/rules/key.h"

static void each_key_is_found_by_its_word(void **state)
{
    rlr_key_t key = RLR_KEYS;

    assert_true(rlr_key_parse(&key, "api-key"));
    assert_int_equal(key, RLR_KEY_API);
    assert_true(rlr_key_parse(&key, "user+ip"));
    assert_int_equal(key, RLR_KEY_USER);
    assert_true(rlr_key_parse(&key, "ip"));
    assert_int_equal(key, RLR_KEY_IP);
}

static void an_unknown_word_is_not_a_key(void **state)
{
    rlr_key_t key;

    assert_false(rlr_key_parse(&key, ""));
    assert_false(rlr_key_parse(&key, "cookie"));
    assert_false(rlr_key_parse(&key, "API-KEY"));
}

static void rows_are_complete(void **state)
{
    for (int i = 0; i < RLR_KEYS; i++) {
        const rlr_key_row_t *row = &rlr_keys[i];

        assert_non_null(row->word);
        assert_non_null(row->field);
        assert_non_null(row->label);
        assert_true(row->header != NULL || row->by_address);
        assert_true((row->header != NULL) == (row->max > 0));
    }
}

static void words_are_unique(void **state)
{
    for (int i = 0; i < RLR_KEYS; i++) {
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(rlr_keys[i].word, rlr_keys[k].word);
        }
    }
}

static void a_key_covers_itself(void **state)
{
    for (int i = 0; i < RLR_KEYS; i++) {
        assert_true(rlr_key_covers((rlr_key_t)i, (rlr_key_t)i));
    }
}

static void a_key_without_a_header_covers_all_others(void **state)
{
    assert_true(rlr_key_covers(RLR_KEY_IP, RLR_KEY_API));
    assert_true(rlr_key_covers(RLR_KEY_IP, RLR_KEY_USER));
}

static void a_key_does_not_cover_one_with_another_header(void **state)
{
    assert_false(rlr_key_covers(RLR_KEY_API, RLR_KEY_USER));
    assert_false(rlr_key_covers(RLR_KEY_API, RLR_KEY_IP));
}

static void keys_are_listed_for_messages(void **state)
{
    const char *all = rlr_key_list(false, *state);
    const char *with_header = rlr_key_list(true, *state);

    assert_ptr_equal(strstr(all, "key=api-key, key=user+ip"), all);
    assert_non_null(strstr(all, " or key="));
    assert_non_null(strstr(all, "key=ip"));
    assert_ptr_equal(strstr(with_header, "key=api-key"), with_header);
    assert_non_null(strstr(with_header, "key=user+ip"));
    assert_null(strstr(with_header, "key=ip"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(each_key_is_found_by_its_word),
        CHECK_TEST(an_unknown_word_is_not_a_key),
        CHECK_TEST(rows_are_complete),
        CHECK_TEST(words_are_unique),
        CHECK_TEST(a_key_covers_itself),
        CHECK_TEST(a_key_without_a_header_covers_all_others),
        CHECK_TEST(a_key_does_not_cover_one_with_another_header),
        CHECK_TEST(keys_are_listed_for_messages)};

    return CHECK_RUN(tests);
}
