/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/scope.c */
/* The words of scopes. */
#include "check.h"

#include "../../mod_agent/core/scope.h"

static void a_scope_and_its_word_stand_for_each_other(void **state)
{
    static const char *const words[] = {"read", "run", "deploy", "admin"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        unsigned scope = agent_scope_read(words[i]);

        assert_int_not_equal(scope, 0);
        assert_string_equal(agent_scope_word((agent_scope_t)scope), words[i]);
    }
    assert_int_equal(agent_scope_read("none"), 0);
    assert_int_equal(agent_scope_read("Read"), 0);
    assert_int_equal(agent_scope_read(""), 0);
    assert_null(agent_scope_word(AGENT_SCOPE_NONE));
}

static void a_set_of_scopes_is_printed_as_a_json_array(void **state)
{
    assert_string_equal(agent_scope_print(0, *state), "[]");
    assert_string_equal(
        agent_scope_print(AGENT_SCOPE_ADMIN | AGENT_SCOPE_READ, *state),
        "[\"read\",\"admin\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_scope_and_its_word_stand_for_each_other),
        CHECK_TEST(a_set_of_scopes_is_printed_as_a_json_array)};

    return CHECK_RUN(tests);
}
