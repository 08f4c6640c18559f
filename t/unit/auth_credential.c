/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: auth/credential.c */
/* Which header of a request has its API key. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/auth/credential.h"

typedef struct example_t {
    const char *api_key;
    const char *authorization;
    /* NULL: the result is not AGENT_CREDENTIAL_FOUND. */
    const char *key;
    agent_credential_t result;
} example_t;

static void check(const example_t *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *key = NULL;
        agent_credential_t result = agent_credential_choose(
            &key, examples[i].api_key, examples[i].authorization);

        if (result != examples[i].result
            || (key != NULL) != (examples[i].key != NULL)
            || (key != NULL && strcmp(key, examples[i].key) != 0)) {
            fail_msg("example %zu: %d, %s", i, (int)result, key ? key : "-");
        }
    }
}

#define CHECK(examples) check(examples, sizeof(examples) / sizeof(*(examples)))

static void x_api_key_decides_when_it_is_present(void **state)
{
    static const example_t examples[] = {
        {"k", NULL, "k", AGENT_CREDENTIAL_FOUND},
        {"k", "Basic YTpi", "k", AGENT_CREDENTIAL_FOUND},
        {"k", "Bearer k", "k", AGENT_CREDENTIAL_FOUND},
        {"", "Bearer k", NULL, AGENT_CREDENTIAL_INVALID},
        {"k", "Bearer", NULL, AGENT_CREDENTIAL_CONFLICT},
        {"k", "Bearer K", NULL, AGENT_CREDENTIAL_CONFLICT},
        {"k", "Bearer k, Bearer k", NULL, AGENT_CREDENTIAL_CONFLICT}};

    CHECK(examples);
}

static void a_bearer_token_is_the_key_without_it(void **state)
{
    static const example_t examples[] = {
        {NULL, "Bearer k", "k", AGENT_CREDENTIAL_FOUND},
        {NULL, "bearer  k", "k", AGENT_CREDENTIAL_FOUND},
        {NULL, "Bearerk", NULL, AGENT_CREDENTIAL_NONE},
        {NULL, "Basic YTpi", NULL, AGENT_CREDENTIAL_NONE},
        {NULL, "Bearer", NULL, AGENT_CREDENTIAL_INVALID},
        {NULL, "Bearer ", NULL, AGENT_CREDENTIAL_INVALID},
        {NULL, NULL, NULL, AGENT_CREDENTIAL_NONE}};

    CHECK(examples);
}

static void repeated_and_long_headers_are_invalid(void **state)
{
    char longest[] = "ag1_r2345678-0123456_dk_0000000000000000000000_"
                     "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1_1ROH5T?";
    const example_t examples[] = {
        {"k, k", NULL, NULL, AGENT_CREDENTIAL_INVALID},
        {"k,k", NULL, NULL, AGENT_CREDENTIAL_INVALID},
        {"k k", NULL, NULL, AGENT_CREDENTIAL_INVALID},
        {"k\t", NULL, NULL, AGENT_CREDENTIAL_INVALID},
        {"\xc3\xa9", NULL, NULL, AGENT_CREDENTIAL_INVALID},
        {NULL, "Bearer k, Bearer k", NULL, AGENT_CREDENTIAL_INVALID},
        {longest, NULL, NULL, AGENT_CREDENTIAL_INVALID}};

    CHECK(examples);
    longest[sizeof(longest) - 2] = '\0';
    check(&(const example_t){longest, NULL, longest, AGENT_CREDENTIAL_FOUND},
          1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(x_api_key_decides_when_it_is_present),
        CHECK_TEST(a_bearer_token_is_the_key_without_it),
        CHECK_TEST(repeated_and_long_headers_are_invalid)};

    return CHECK_RUN(tests);
}
