/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/digest.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/sha256.c */
/* Digests (rules/digest.c, rules/sha256.c). */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/rules/sha256.h"

/* printf %s abc | sha256sum | cut -c1-32 */
#define ABC "ba7816bf8f01cfea414140de5dae2223"

static void a_digest_is_half_of_the_sha256(void **state)
{
    char text[RLR_DIGEST_TEXT_SIZE];
    rlr_digest_t digest = rlr_sha256_digest("abc", 3);

    rlr_digest_format(text, &digest);
    assert_string_equal(text, "sha256:" ABC);
}

static void a_written_digest_is_parsed(void **state)
{
    static const char *const same[] = {
        "sha256:" ABC, "sha256:BA7816BF8F01CFEA414140DE5DAE2223",
        "sha256:" ABC "b00361a396177a9cb410ff61f20015ad"};
    rlr_digest_t expected = rlr_sha256_digest("abc", 3);
    rlr_digest_t digest;

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        memset(&digest, 0, sizeof(digest));
        assert_true(rlr_digest_parse(&digest, same[i]));
        assert_true(rlr_digest_equal(&digest, &expected));
    }
}

static void a_text_that_is_not_a_digest_is_refused(void **state)
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

static void different_keys_have_different_digests(void **state)
{
    rlr_digest_t a = rlr_sha256_digest("abc", 3);
    rlr_digest_t b = rlr_sha256_digest("abd", 3);

    assert_false(rlr_digest_equal(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_digest_is_half_of_the_sha256),
        CHECK_TEST(a_written_digest_is_parsed),
        CHECK_TEST(a_text_that_is_not_a_digest_is_refused),
        CHECK_TEST(different_keys_have_different_digests)};

    int failed;

    if (!rlr_sha256_begin()) {
        return 1;
    }
    failed = CHECK_RUN(tests);
    rlr_sha256_end();
    return failed;
}
