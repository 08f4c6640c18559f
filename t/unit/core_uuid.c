/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/uuid.c */
/* UUIDs: the strict reader, graphs' assistants, ids that sort by time. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/core/uuid.h"

static void a_uuid_is_parsed_in_either_case_and_written_in_lower_case(
    void **state)
{
    char id[AGENT_UUID_SIZE];

    assert_true(agent_uuid_parse(id, "018F2D6E-7C4B-7ABC-9DEF-0123456789AB"));
    assert_string_equal(id, "018f2d6e-7c4b-7abc-9def-0123456789ab");
}

static void any_other_notation_of_a_uuid_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "018f2d6e",
                                      "018f2d6e7c4b7abc9def0123456789ab",
                                      "{018f2d6e-7c4b-7abc-9def-0123456789ab}",
                                      "018f2d6e-7c4b-7abc-9def-0123456789a",
                                      "018f2d6e-7c4b-7abc-9def-0123456789abc",
                                      "018f2d6e-7c4b-7abc-9def-0123456789ag",
                                      "018f2d6e_7c4b_7abc_9def_0123456789ab",
                                      " 018f2d6e-7c4b-7abc-9def-0123456789ab",
                                      "018f2d6e-7c4b-7abc-9def-0123456789ab ",
                                      "-18f2d6e-7c4b-7abc-9def-0123456789ab"};
    char id[AGENT_UUID_SIZE];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(agent_uuid_parse(id, bad[i]));
    }
    assert_false(agent_uuid_parse(id, NULL));
}

static void the_assistant_of_a_graph_has_the_published_id(void **state)
{
    char id[AGENT_UUID_SIZE];

    agent_uuid_v5(id, "agent");
    assert_string_equal(id, "fe096781-5601-53d2-b2f6-0d3403f7e9ca");
}

static void new_ids_are_version_7_and_sort_in_the_order_of_the_calls(
    void **state)
{
    char before[AGENT_UUID_SIZE] = "";
    char id[AGENT_UUID_SIZE];
    char again[AGENT_UUID_SIZE];

    for (int i = 0; i < 20000; i++) {
        agent_uuid_v7(id);
        assert_true(agent_uuid_parse(again, id));
        assert_string_equal(id, again);
        assert_int_equal(id[14], '7');
        assert_non_null(strchr("89ab", id[19]));
        assert_true(strcmp(before, id) < 0);
        memcpy(before, id, sizeof(id));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_uuid_is_parsed_in_either_case_and_written_in_lower_case),
        CHECK_TEST(any_other_notation_of_a_uuid_is_refused),
        CHECK_TEST(the_assistant_of_a_graph_has_the_published_id),
        CHECK_TEST(new_ids_are_version_7_and_sort_in_the_order_of_the_calls)};

    return CHECK_RUN(tests);
}
