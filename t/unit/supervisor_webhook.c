/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/webhook/sign.c supervisor/webhook/outcome.c */
/* Webhooks: the signature, and what a receiver's response means. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/supervisor/webhook/outcome.h"
#include "../../mod_agent/supervisor/webhook/sign.h"

/* whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw */
static const unsigned char key[] = {
    0x31, 0xf2, 0x90, 0xf6, 0xbf, 0x06, 0x29, 0x8a, 0xab, 0x4f, 0x08, 0xd4,
    0x3c, 0x3f, 0x08, 0x2c, 0xf6, 0x48, 0xa3, 0x62, 0xda, 0x2d, 0xa4, 0xb0};

static const char *sign(const char *id, const char *timestamp, const char *body,
                        apr_pool_t *pool)
{
    agent_webhook_message_t message = {id, timestamp, body, strlen(body)};

    return agent_webhook_sign(&message, key, sizeof(key), pool);
}

/* Expected: what npm's standardwebhooks 1.0.0 computes. */
static void the_signature_is_that_of_the_published_library(void **state)
{
    assert_string_equal(sign("0192f3c8-7c4b-7abc-9def-0123456789ab",
                             "1614265330", "{\"test\":2432232314}", *state),
                        "v1,Nar4ARn6rVwRBFDFfSinmZAuyf0phPX191GCodwALxk=");
    assert_string_equal(sign("", "0", "", *state),
                        "v1,VzQ28JIFJf+0udpQ8sGkwkIaWjCGsXxrtnallQa/U+k=");
}

static void every_part_is_signed(void **state)
{
    const char *signature = sign("id", "1", "body", *state);

    assert_string_equal(sign("id", "1", "body", *state), signature);
    assert_string_not_equal(sign("ie", "1", "body", *state), signature);
    assert_string_not_equal(sign("id", "2", "body", *state), signature);
    assert_string_not_equal(sign("id", "1", "bodz", *state), signature);
    assert_string_not_equal(sign("id", "1", "", *state), signature);
    assert_int_equal(strlen(signature), 3 + 44);
}

static agent_webhook_outcome_t outcome_of(int status, int wait,
                                          apr_pool_t *pool)
{
    agent_webhook_response_t response = {
        .status = status, .failure = "some failure", .retry_after = wait};

    return agent_webhook_outcome(&response, pool);
}

static void a_status_of_2xx_is_a_delivery(void **state)
{
    for (int status = 200; status < 300; status++) {
        agent_webhook_outcome_t outcome = outcome_of(status, 7, *state);

        assert_string_equal(outcome.result, "delivered");
        assert_null(outcome.reason);
        assert_int_equal(outcome.wait, 0);
    }
}

static void statuses_that_may_pass_are_failures_with_the_wait_asked_for(
    void **state)
{
    static const int statuses[] = {408, 425, 429, 500, 501, 503, 504, 599, 999};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
        agent_webhook_outcome_t outcome = outcome_of(statuses[i], 7, *state);

        assert_string_equal(outcome.result, "failed");
        assert_int_equal(outcome.wait, 7);
    }
    assert_string_equal(outcome_of(503, 0, *state).reason, "status 503");
}

static void other_statuses_and_redirects_are_final(void **state)
{
    static const int statuses[] = {300, 301, 302, 304, 307, 308, 400, 401,
                                   403, 404, 405, 410, 413, 415, 422, 499};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
        agent_webhook_outcome_t outcome = outcome_of(statuses[i], 7, *state);

        assert_string_equal(outcome.result, "refused");
        assert_int_equal(outcome.wait, 0);
    }
    assert_string_equal(outcome_of(404, 0, *state).reason, "status 404");
    assert_string_equal(outcome_of(302, 0, *state).reason,
                        "status 302: redirects are not followed");
}

static void without_a_final_status_the_failure_is_the_reason(void **state)
{
    agent_webhook_response_t response = {.failure = "nobody there"};

    assert_string_equal(outcome_of(0, 0, *state).result, "failed");
    assert_string_equal(outcome_of(100, 0, *state).result, "failed");
    assert_string_equal(outcome_of(103, 0, *state).reason, "some failure");
    assert_string_equal(agent_webhook_outcome(&response, *state).reason,
                        "nobody there");
    response.failure = NULL;
    assert_string_equal(agent_webhook_outcome(&response, *state).reason,
                        "no answer");
}

static void a_reason_is_short_and_printable(void **state)
{
    char text[1000];
    agent_webhook_response_t response = {.failure = text};
    const char *reason;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memcpy(text, "a\r\nb\033\377\"", 7);
    reason = agent_webhook_outcome(&response, *state).reason;
    assert_int_equal(strlen(reason), 300);
    assert_memory_equal(reason, "a??b??\"xxx", 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_signature_is_that_of_the_published_library),
        CHECK_TEST(every_part_is_signed),
        CHECK_TEST(a_status_of_2xx_is_a_delivery),
        CHECK_TEST(statuses_that_may_pass_are_failures_with_the_wait_asked_for),
        CHECK_TEST(other_statuses_and_redirects_are_final),
        CHECK_TEST(without_a_final_status_the_failure_is_the_reason),
        CHECK_TEST(a_reason_is_short_and_printable)};

    return CHECK_RUN(tests);
}
