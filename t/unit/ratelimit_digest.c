/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/digest.c */
/* Keys as operators write and read them. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/rules/digest.h"

/* printf %s abc | sha256sum | cut -c1-32 */
#define ABC "ba7816bf8f01cfea414140de5dae2223"

static void a_key_is_written_as_half_of_its_sha256(void **state)
{
    char text[RLR_DIGEST_TEXT_SIZE];
    rlr_digest_t digest = rlr_digest_make("abc", 3);

    rlr_digest_format(text, &digest);
    assert_string_equal(text, "sha256:" ABC);
}

static void what_is_written_is_read_again(void **state)
{
    static const char *const same[] = {
        "sha256:" ABC, "sha256:BA7816BF8F01CFEA414140DE5DAE2223",
        "sha256:" ABC "b00361a396177a9cb410ff61f20015ad"};
    rlr_digest_t expected = rlr_digest_make("abc", 3);
    rlr_digest_t digest;

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        memset(&digest, 0, sizeof(digest));
        assert_true(rlr_digest_parse(&digest, same[i]));
        assert_true(rlr_digest_equal(&digest, &expected));
    }
}

static void anything_else_is_no_hash(void **state)
{
    static const char *const bad[] = {"",
                                      "sha256:",
                                      "sha256:ba",
                                      ABC,
                                      "SHA256:" ABC,
                                      "sha256:" ABC "0",
                                      "sha256:ga7816bf8f01cfea414140de5dae2223",
                                      "sha256: a7816bf8f01cfea414140de5dae2223",
                                      "sha256:" ABC
                                      "b00361a396177a9cb410ff61f20015ag"};
    rlr_digest_t digest;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(rlr_digest_parse(&digest, bad[i]));
    }
}

static void different_keys_are_told_apart(void **state)
{
    rlr_digest_t a = rlr_digest_make("abc", 3);
    rlr_digest_t b = rlr_digest_make("abd", 3);

    assert_false(rlr_digest_equal(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_key_is_written_as_half_of_its_sha256),
        CHECK_TEST(what_is_written_is_read_again),
        CHECK_TEST(anything_else_is_no_hash),
        CHECK_TEST(different_keys_are_told_apart)};

    int failed;

    if (!rlr_digest_begin()) {
        return 1;
    }
    failed = CHECK_RUN(tests);
    rlr_digest_end();
    return failed;
}
