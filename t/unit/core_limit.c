/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/error.c core/limit.c */
/* The limits of accounts: words and errors. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/core/limit.h"

static void every_word_names_its_limit(void **state)
{
    for (int i = 0; i < AGENT_LIMIT_COUNT; i++) {
        agent_limit_name_t name;
        const char *word = agent_limit_word((agent_limit_name_t)i);

        assert_true(agent_limit_find(&name, word));
        assert_int_equal(name, i);
        assert_non_null(strstr(agent_limit_list_words(*state), word));
    }
}

static void an_unknown_word_names_none(void **state)
{
    agent_limit_name_t name;

    assert_false(agent_limit_find(&name, "Keys"));
    assert_false(agent_limit_find(&name, "keys "));
    assert_false(agent_limit_find(&name, ""));
}

static void the_error_names_the_limit_and_how_it_is_raised(void **state)
{
    agent_error_t *err = NULL;

    assert_int_equal(agent_limit_refuse_text(&err, "keys 9000000000", *state),
                     APR_EGENERAL);
    assert_int_equal(err->id, AGENT_E_LIMIT);
    assert_int_equal(agent_error_http(err->id), 429);
    assert_string_equal(err->detail,
                        "The account may have at most 9000000000 valid API "
                        "keys. The operator of the server raises this limit "
                        "with AgentLimit keys.");
    assert_string_equal(err->members,
                        ",\"limit\":\"keys\",\"value\":9000000000");
}

/* A client that repeats the request does not help. */
static void the_error_of_stored_bytes_is_not_one_to_try_again(void **state)
{
    agent_error_t *err = NULL;

    assert_int_equal(agent_limit_refuse_text(&err, "stored_bytes 5", *state),
                     APR_EGENERAL);
    assert_int_equal(err->id, AGENT_E_STORED_BYTES);
    assert_int_equal(agent_error_http(err->id), 413);
    assert_string_equal(err->members,
                        ",\"limit\":\"stored_bytes\",\"value\":5");
}

static void a_request_may_be_repeated_where_waiting_helps(void **state)
{
    static const struct {
        const char *text;
        int retry_sec;
    } cases[] = {{"queued_runs 3", 5}, {"webhooks 1", 5},
                 {"streams 1", 5},     {"waiting_requests 1", 5},
                 {"webhooks 0", 0},    {"queued_runs 0", 0},
                 {"keys 2", 0},        {"threads 2", 0},
                 {"deployments 2", 0}, {"stored_bytes 5", 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        agent_error_t *err = NULL;

        agent_limit_refuse_text(&err, cases[i].text, *state);
        assert_int_equal(err->retry_sec, cases[i].retry_sec);
    }
}

static void a_text_without_a_limit_is_an_internal_error(void **state)
{
    static const char *const texts[] = {NULL, "", "keys", "hats 1"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        agent_error_t *err = NULL;

        agent_limit_refuse_text(&err, texts[i], *state);
        assert_int_equal(err->id, AGENT_E_INTERNAL);
        assert_string_equal(err->members, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(every_word_names_its_limit),
        CHECK_TEST(an_unknown_word_names_none),
        CHECK_TEST(the_error_names_the_limit_and_how_it_is_raised),
        CHECK_TEST(the_error_of_stored_bytes_is_not_one_to_try_again),
        CHECK_TEST(a_request_may_be_repeated_where_waiting_helps),
        CHECK_TEST(a_text_without_a_limit_is_an_internal_error)};

    return CHECK_RUN(tests);
}
