/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/key_record.c core/ */
/* The record of an API key, as agent.find_api_key() returns it. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/model/key_record.h"
#include "../../mod_agent/core/clock.h"

#define BEGUN apr_time_from_sec(100)
#define UUID  "018f0000-0000-7000-8000-000000000001"
#define DIGEST                                                                 \
    "abababababababababababababababababababababababababababababababab"

typedef struct member_t {
    const char *key;
    const char *value;
} member_t;

/* A key of one deployment. */
static const member_t limited[] = {{"digest", "\"" DIGEST "\""},
                                   {"account_id", "\"" UUID "\""},
                                   {"kind", "\"personal\""},
                                   {"user_id", "\"ann\""},
                                   {"deployment_id", "\"" UUID "\""},
                                   {"deployment", "\"shop\""},
                                   {"region", "\"eu\""},
                                   {"scopes", "[\"read\",\"run\"]"},
                                   {"expires_in_ms", "1500"},
                                   {"is_used", "true"}};

enum { MEMBERS = sizeof(limited) / sizeof(limited[0]), NO_MEMBER = MEMBERS };

/* The object with another value of the member at `changed`; NULL: without it.
 */
static const char *print(int changed, const char *value, apr_pool_t *pool)
{
    const char *text = "";

    for (int i = 0; i < MEMBERS; i++) {
        const char *own = i == changed ? value : limited[i].value;

        if (own != NULL) {
            text = apr_pstrcat(pool, text, *text == '\0' ? "{" : ",", "\"",
                               limited[i].key, "\":", own, NULL);
        }
    }
    return apr_pstrcat(pool, text, "}", NULL);
}

static bool reads(agent_key_record_t *out, const char *body, apr_pool_t *pool)
{
    memset(out, 0, sizeof(*out));
    return agent_key_record_read(out, body, BEGUN, pool);
}

static void all_members_are_read(void **state)
{
    agent_key_record_t record;
    const agent_identity_t *identity = &record.identity;

    assert_true(reads(&record, print(NO_MEMBER, NULL, *state), *state));
    assert_int_equal(record.digest[31], 0xab);
    assert_string_equal(record.region, "eu");
    assert_true(record.is_use_recorded);
    assert_string_equal(identity->account_id, UUID);
    assert_string_equal(identity->deployment_id, UUID);
    assert_string_equal(identity->deployment, "shop");
    assert_string_equal(identity->user_id, "ann");
    assert_int_equal(identity->kind, AGENT_API_KEY_PERSONAL);
    assert_int_equal(identity->scopes, AGENT_SCOPE_READ | AGENT_SCOPE_RUN);
    assert_true(identity->checked_at == BEGUN);
    assert_true(identity->expires_at == BEGUN + apr_time_from_msec(1500));
}

static void null_is_all_deployments_no_user_and_no_expiry(void **state)
{
    agent_key_record_t record;

    assert_true(reads(&record,
                      "{\"digest\":\"" DIGEST "\",\"account_id\":\"" UUID
                      "\",\"kind\":\"service\",\"user_id\":null,"
                      "\"deployment_id\":null,\"deployment\":null,"
                      "\"region\":\"eu\",\"scopes\":[\"admin\"],"
                      "\"expires_in_ms\":null,\"is_used\":false}",
                      *state));
    assert_string_equal(record.identity.deployment_id, "");
    assert_string_equal(record.identity.deployment, "");
    assert_null(record.identity.user_id);
    assert_true(record.identity.expires_at == AGENT_CLOCK_NEVER);
    assert_false(record.is_use_recorded);
}

static void a_record_without_one_of_its_members_is_refused(void **state)
{
    agent_key_record_t record;

    for (int i = 0; i < MEMBERS; i++) {
        if (reads(&record, print(i, NULL, *state), *state)) {
            fail_msg("it was read without %s", limited[i].key);
        }
    }
    assert_false(reads(&record, "{}", *state));
    assert_false(reads(&record, "[]", *state));
    assert_false(reads(&record, "", *state));
}

static void a_member_of_another_type_is_refused(void **state)
{
    static const char *const others[] = {"{}", "\"\"", "true"};
    agent_key_record_t record;

    for (int i = 0; i < MEMBERS; i++) {
        for (int j = 0; j < 3; j++) {
            bool is_own = (strcmp(limited[i].key, "is_used") == 0 && j == 2)
                || (strcmp(limited[i].key, "user_id") == 0 && j == 1);

            if (!is_own
                && reads(&record, print(i, others[j], *state), *state)) {
                fail_msg("it was read with %s as %s", others[j],
                         limited[i].key);
            }
        }
    }
}

static void only_members_that_may_be_null_are_read_so(void **state)
{
    agent_key_record_t record;

    for (int i = 0; i < MEMBERS; i++) {
        bool may_be = strcmp(limited[i].key, "user_id") == 0
            || strcmp(limited[i].key, "expires_in_ms") == 0;

        if (reads(&record, print(i, "null", *state), *state) != may_be) {
            fail_msg("null as %s", limited[i].key);
        }
    }
}

static void a_text_that_does_not_fit_is_refused(void **state)
{
    agent_key_record_t record;

    for (int i = 0; i < MEMBERS; i++) {
        const char *key = limited[i].key;

        if (strcmp(key, "user_id") != 0 && *limited[i].value == '"'
            && reads(&record, print(i, "\"" DIGEST DIGEST DIGEST "\"", *state),
                     *state)) {
            fail_msg("a long %s was read", key);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(all_members_are_read),
        CHECK_TEST(null_is_all_deployments_no_user_and_no_expiry),
        CHECK_TEST(a_record_without_one_of_its_members_is_refused),
        CHECK_TEST(a_member_of_another_type_is_refused),
        CHECK_TEST(only_members_that_may_be_null_are_read_so),
        CHECK_TEST(a_text_that_does_not_fit_is_refused)};

    return CHECK_RUN(tests);
}
