/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/api_key.c */
/* API keys: one text for each, its checksum, and digests. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "../../mod_agent/core/api_key.h"

/* The bytes 0, 1, ... as the id, 100, 101, ... as the secret; the checksum is
 * that of zlib's crc32(). */
#define KEY                                                                    \
    "ag1_eu_sk_000SYW7RiJxkEgOGusQGwp_"                                        \
    "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZvx"
/* The longest region, the smallest id and the largest secret. */
#define LONGEST                                                                \
    "ag1_r2345678-0123456_dk_0000000000000000000000_"                          \
    "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1_1ROH5T"

static void format_key(char out[AGENT_API_KEY_SIZE], const char *region,
                       agent_api_key_kind_t kind, unsigned first)
{
    unsigned char id[AGENT_API_KEY_ID_BYTES];
    unsigned char secret[AGENT_API_KEY_SECRET_BYTES];

    for (unsigned i = 0; i < sizeof(id); i++) {
        id[i] = (unsigned char)(first + i);
    }
    for (unsigned i = 0; i < sizeof(secret); i++) {
        secret[i] = (unsigned char)(first + 100 + i);
    }
    assert_true(agent_api_key_format(out, region, kind, id, secret));
}

static void a_key_has_the_published_format(void **state)
{
    char text[AGENT_API_KEY_SIZE];

    format_key(text, "eu", AGENT_API_KEY_SERVICE, 0);
    assert_string_equal(text, KEY);
}

static void a_key_is_parsed_into_its_parts(void **state)
{
    agent_api_key_t key;

    assert_int_equal(agent_api_key_parse(&key, KEY), AGENT_API_KEY_OK);
    assert_string_equal(key.region, "eu");
    assert_int_equal(key.kind, AGENT_API_KEY_SERVICE);
    assert_string_equal(key.id, "000SYW7RiJxkEgOGusQGwp");
    assert_memory_equal(key.secret,
                        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_", 44);
    assert_int_equal(agent_api_key_parse(&key, LONGEST), AGENT_API_KEY_OK);
    assert_string_equal(key.region, "r2345678-0123456");
    assert_int_equal(key.kind, AGENT_API_KEY_DEPLOYMENT);
    assert_int_equal(strlen(LONGEST), AGENT_API_KEY_SIZE - 1);
}

static void a_key_that_was_written_is_read_again(void **state)
{
    static const agent_api_key_kind_t kinds[] = {AGENT_API_KEY_SERVICE,
                                                 AGENT_API_KEY_PERSONAL,
                                                 AGENT_API_KEY_DEPLOYMENT};

    for (unsigned i = 0; i < 256; i++) {
        char text[AGENT_API_KEY_SIZE];
        agent_api_key_t key;

        format_key(text, "us-east-1", kinds[i % 3], i);
        assert_int_equal(agent_api_key_parse(&key, text), AGENT_API_KEY_OK);
        assert_string_equal(key.region, "us-east-1");
        assert_int_equal(key.kind, kinds[i % 3]);
    }
}

static void any_other_form_is_malformed(void **state)
{
    static const char *const bad[] = {
        "", "ag1_", "ag1_eu_sk_", "x" KEY, " " KEY, KEY " ", KEY "0",
        KEY ", " KEY, LONGEST "0",
        "AG1_eu_sk_000SYW7RiJxkEgOGusQGwp_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZvx",
        "ag2_eu_sk_000SYW7RiJxkEgOGusQGwp_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZvx",
        "ag1_eu_xk_000SYW7RiJxkEgOGusQGwp_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZvx",
        "ag1_Eu_sk_000SYW7RiJxkEgOGusQGwp_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZvx",
        "ag1__sk_000SYW7RiJxkEgOGusQGwp_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZvx",
        "ag1_r2345678-01234567_sk_000SYW7RiJxkEgOGusQGwp_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZvx",
        /* A character less, another one, one that is a letter elsewhere. */
        "ag1_eu_sk_000SYW7RiJxkEgOGusQGw_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZvx",
        "ag1_eu_sk_000SYW7RiJxkEgOGusQGwp_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBE-_2jrZvx",
        "ag1_eu_sk_000SYW7RiJxkEgOGusQGwp_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBE\xe9_2jrZvx",
        "ag1_eu_sk_000SYW7RiJxkEgOGusQGwp_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZv",
        /* 2^128 and 2^256. */
        "ag1_eu_sk_7n42DGM5Tflk9n8mt7Fhc8_"
        "No287qEH4uQv9vBo5cxQTXAw02KFtzjuPbCrH1FrBEB_2jrZvx",
        "ag1_eu_sk_000SYW7RiJxkEgOGusQGwp_"
        "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp2_2jrZvx"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        agent_api_key_t key;

        if (agent_api_key_parse(&key, bad[i]) != AGENT_API_KEY_MALFORMED) {
            fail_msg("'%s' is not malformed", bad[i]);
        }
    }
}

static void any_change_of_one_character_is_detected(void **state)
{
    for (size_t i = 0; i < strlen(KEY); i++) {
        for (int c = 1; c < 256; c++) {
            char text[] = KEY;
            agent_api_key_t key;

            text[i] = (char)c;
            if (text[i] != KEY[i]
                && agent_api_key_parse(&key, text) == AGENT_API_KEY_OK) {
                fail_msg("'%s' was accepted", text);
            }
        }
    }
}

/* xorshift64*; from 0 to below. */
static unsigned draw(uint64_t *random, unsigned below)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (unsigned)((*random * 2685821657736338717ULL) >> 33) % below;
}

static void forged_keys_are_refused_without_a_database(void **state)
{
    static const char digits[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t random = 1;

    for (int i = 0; i < 100000; i++) {
        char text[] = KEY;
        agent_api_key_t key;

        for (size_t k = strlen("ag1_eu_sk_"); text[k] != '\0'; k++) {
            if (text[k] != '_') {
                text[k] = digits[draw(&random, 62)];
            }
        }
        if (agent_api_key_parse(&key, text) == AGENT_API_KEY_OK) {
            fail_msg("'%s' was accepted", text);
        }
    }
}

/* AddressSanitizer and valgrind find reads beyond the block. */
static void a_long_text_is_not_read_to_its_end(void **state)
{
    agent_api_key_t key;
    char *text = malloc(AGENT_API_KEY_SIZE);

    assert_non_null(text);
    memcpy(text, LONGEST, AGENT_API_KEY_SIZE);
    text[AGENT_API_KEY_SIZE - 1] = '0';
    assert_int_equal(agent_api_key_parse(&key, text), AGENT_API_KEY_MALFORMED);
    free(text);
}

static void a_region_begins_with_a_letter_and_has_at_most_16_characters(
    void **state)
{
    static const char *const bad[] = {"",    "1eu", "-eu", "eu_",
                                      "eu ", "EU",  "e.u", "r23456789-1234567",
                                      "\xe9"};
    char text[AGENT_API_KEY_SIZE] = "";
    const unsigned char zeros[AGENT_API_KEY_SECRET_BYTES] = {0};

    assert_true(agent_api_key_is_region("e"));
    assert_true(agent_api_key_is_region("us-east-1"));
    assert_true(agent_api_key_is_region("r234567890123456"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_false(agent_api_key_is_region(bad[i]));
        assert_false(agent_api_key_format(text, bad[i], AGENT_API_KEY_PERSONAL,
                                          zeros, zeros));
    }
}

static void the_region_of_a_key_is_told_by_its_begin(void **state)
{
    static const char *const others[] = {"",    "ag1_eu", "ag1_eu-1_sk_",
                                         "eu_", "ag1_e_", "ag2_eu_sk_"};

    assert_true(agent_api_key_begins_with(KEY, "eu"));
    assert_true(agent_api_key_begins_with(LONGEST, "r2345678-0123456"));
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_false(agent_api_key_begins_with(others[i], "eu"));
    }
}

static void the_digest_of_a_secret_is_the_sha_256_of_its_characters(
    void **state)
{
    static const unsigned char expected[AGENT_API_KEY_DIGEST_BYTES] = {
        0x14, 0x4d, 0xc1, 0x3a, 0xb9, 0xd8, 0x9b, 0xb1, 0xbb, 0x17, 0x1c,
        0xe1, 0xd5, 0x60, 0x46, 0x52, 0x33, 0xd2, 0xe6, 0x5e, 0x74, 0x9a,
        0xef, 0xd8, 0x1b, 0x28, 0x9c, 0x43, 0x77, 0x52, 0x77, 0xcc};
    unsigned char digest[AGENT_API_KEY_DIGEST_BYTES];
    agent_api_key_t key;

    assert_int_equal(agent_api_key_parse(&key, KEY), AGENT_API_KEY_OK);
    assert_true(
        agent_api_key_digest(digest, key.secret, AGENT_API_KEY_SECRET_CHARS));
    assert_true(agent_api_key_is_digest(digest, expected));
    digest[31] ^= 1;
    assert_false(agent_api_key_is_digest(digest, expected));
}

static void kinds_have_the_words_that_the_database_has(void **state)
{
    static const char *const words[] = {"service", "personal", "deployment"};
    agent_api_key_kind_t kind;

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        assert_true(agent_api_key_read_kind(&kind, words[i]));
        assert_string_equal(agent_api_key_kind_word(kind), words[i]);
    }
    assert_false(agent_api_key_read_kind(&kind, "sk"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_key_has_the_published_format),
        CHECK_TEST(a_key_is_parsed_into_its_parts),
        CHECK_TEST(a_key_that_was_written_is_read_again),
        CHECK_TEST(any_other_form_is_malformed),
        CHECK_TEST(any_change_of_one_character_is_detected),
        CHECK_TEST(forged_keys_are_refused_without_a_database),
        CHECK_TEST(a_long_text_is_not_read_to_its_end),
        CHECK_TEST(a_region_begins_with_a_letter_and_has_at_most_16_characters),
        CHECK_TEST(the_region_of_a_key_is_told_by_its_begin),
        CHECK_TEST(the_digest_of_a_secret_is_the_sha_256_of_its_characters),
        CHECK_TEST(kinds_have_the_words_that_the_database_has)};

    return CHECK_RUN(tests);
}
