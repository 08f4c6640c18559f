/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/deployment.c */
/* Deployments as texts. */
#include "check.h"

#include <apr_strings.h>

#include "../../mod_agent/core/deployment.h"

#define ACCOUNT "018f2d6e-7c4b-7abc-9def-0123456789ab"

static void a_deployment_of_the_built_in_account_is_its_name(void **state)
{
    assert_string_equal(
        agent_deployment_print("shop", AGENT_ACCOUNT_ID, *state), "shop");
    assert_string_equal(agent_deployment_name("shop", *state), "shop");
    assert_null(agent_deployment_account("shop"));
}

static void a_deployment_of_another_account_names_the_account(void **state)
{
    const char *text = agent_deployment_print("shop", ACCOUNT, *state);

    assert_string_equal(text, "shop@" ACCOUNT);
    assert_string_equal(agent_deployment_name(text, *state), "shop");
    assert_string_equal(agent_deployment_account(text), ACCOUNT);
}

static void a_name_begins_with_a_letter_or_digit(void **state)
{
    static const char label[] =
        "a23456789-123456789-123456789-123456789-123456789-123456789-123";

    assert_true(agent_deployment_is_name("shop"));
    assert_true(agent_deployment_is_name("0"));
    assert_true(agent_deployment_is_name("a-b_c-"));
    assert_true(agent_deployment_is_name(label));
    assert_false(agent_deployment_is_name(""));
    assert_false(agent_deployment_is_name("-shop"));
    assert_false(agent_deployment_is_name("_shop"));
    assert_false(agent_deployment_is_name("Shop"));
    assert_false(agent_deployment_is_name("shop@a"));
    assert_false(
        agent_deployment_is_name(apr_pstrcat(*state, label, "4", NULL)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_deployment_of_the_built_in_account_is_its_name),
        CHECK_TEST(a_deployment_of_another_account_names_the_account),
        CHECK_TEST(a_name_begins_with_a_letter_or_digit)};

    return CHECK_RUN(tests);
}
