/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/word.c */
/* Words of a fixed set. */
#include "check.h"

#include "../../mod_agent/core/word.h"

static const char *const words[] = {"reject", "enqueue", "rollback", NULL};
static const char *const one[] = {"all", NULL};

static void a_word_is_found_by_its_text(void **state)
{
    char text[] = "enqueue";

    assert_ptr_equal(agent_word_find(text, words), words[1]);
}

static void any_other_text_is_not_found(void **state)
{
    assert_null(agent_word_find("", words));
    assert_null(agent_word_find("Reject", words));
    assert_null(agent_word_find("reject ", words));
    assert_null(agent_word_find("rejec", words));
}

static void words_are_printed_as_a_list(void **state)
{
    assert_string_equal(agent_word_print(words, *state),
                        "reject, enqueue or rollback");
    assert_string_equal(agent_word_print(words + 1, *state),
                        "enqueue or rollback");
    assert_string_equal(agent_word_print(one, *state), "all");
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(a_word_is_found_by_its_text),
                                       CHECK_TEST(any_other_text_is_not_found),
                                       CHECK_TEST(words_are_printed_as_a_list)};

    return CHECK_RUN(tests);
}
