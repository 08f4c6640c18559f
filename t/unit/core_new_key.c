/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/ */
/* New API keys and invitations. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/core/new_key.h"
#include "../../mod_agent/core/raw.h"

/* The SHA-256 of a text, as PostgreSQL reads it. */
static const char *digest_text(const char *text, size_t length,
                               apr_pool_t *pool)
{
    unsigned char digest[AGENT_API_KEY_DIGEST_BYTES];
    const char *out = "\\x";

    assert_true(agent_api_key_digest(digest, text, length));
    /* Bounded: the bytes of a digest. */
    for (size_t i = 0; i < sizeof(digest); i++) {
        out = apr_psprintf(pool, "%s%02x", out, digest[i]);
    }
    return out;
}

static void a_new_key_is_shown_with_its_record(void **state)
{
    static const char record[] =
        "{\"account\":{\"kind\":1},\"region\":\"eu\",\"kind\":\"personal\"}";
    agent_new_key_t key;
    agent_api_key_t parsed;
    const char *shown;
    const char *text;

    assert_true(agent_new_key_make(&key));
    shown = agent_new_key_show(&key, record, *state);
    assert_non_null(shown);
    text = agent_raw_string(agent_raw_get(agent_raw_read(shown), "key"),
                            *state);
    assert_int_equal(agent_api_key_parse(&parsed, text), AGENT_API_KEY_OK);
    assert_string_equal(parsed.region, "eu");
    assert_int_equal(parsed.kind, AGENT_API_KEY_PERSONAL);
    assert_string_equal(parsed.id, key.id_text);
    assert_string_equal(
        digest_text(parsed.secret, AGENT_API_KEY_SECRET_CHARS, *state),
        key.digest);
    assert_string_equal(strchr(shown, ',') + 1, record + 1);
}

static void another_record_is_not_shown(void **state)
{
    static const char *const records[] = {
        "{}",
        "[]",
        "{\"region\":\"EU\",\"kind\":\"service\"}",
        "{\"region\":\"eu\",\"kind\":\"other\"}",
        "{\"region\":1,\"kind\":\"service\"}",
    };
    agent_new_key_t key;

    assert_true(agent_new_key_make(&key));
    for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
        assert_null(agent_new_key_show(&key, records[i], *state));
    }
}

static void keys_and_invitations_are_made_once(void **state)
{
    char text[2][AGENT_NEW_KEY_TOKEN_SIZE];
    char digest[2][AGENT_DIGEST_SIZE];
    agent_new_key_t key[2];

    for (int i = 0; i < 2; i++) {
        assert_true(agent_new_key_make(&key[i]));
        assert_true(agent_new_key_make_invitation(text[i], digest[i]));
        assert_int_equal(strlen(text[i]), AGENT_NEW_KEY_TOKEN_SIZE - 1);
        assert_int_equal(strncmp(text[i], "inv1_", 5), 0);
        assert_true(agent_new_key_is_invitation(text[i]));
        assert_string_equal(digest_text(text[i], strlen(text[i]), *state),
                            digest[i]);
    }
    assert_string_not_equal(text[0], text[1]);
    assert_false(agent_new_key_is_invitation(text[0] + 1));
    text[0][0] = 'I';
    assert_false(agent_new_key_is_invitation(text[0]));
    assert_string_not_equal(key[0].id_text, key[1].id_text);
    assert_string_not_equal(key[0].digest, key[1].digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_new_key_is_shown_with_its_record),
        CHECK_TEST(another_record_is_not_shown),
        CHECK_TEST(keys_and_invitations_are_made_once)};

    return CHECK_RUN(tests);
}
