/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/id_list.c */
/* Lists of ids, separated by spaces. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/core/id_list.h"

static void check_next(const char **list, const char *expected)
{
    const char *id;
    apr_size_t length;

    assert_true(agent_id_list_next(list, &id, &length));
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(id, expected, length);
}

static void check_end(const char *list)
{
    const char *id;
    apr_size_t length;

    assert_false(agent_id_list_next(&list, &id, &length));
}

static void ids_are_taken_in_order(void **state)
{
    const char *list = "a bc def";

    check_next(&list, "a");
    check_next(&list, "bc");
    check_next(&list, "def");
    check_end(list);
}

static void spaces_around_ids_are_skipped(void **state)
{
    const char *list = "  a   b ";

    check_next(&list, "a");
    check_next(&list, "b");
    check_end(list);
}

static void a_list_without_ids_is_at_its_end(void **state)
{
    check_end("");
    check_end("  ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(ids_are_taken_in_order),
        CHECK_TEST(spaces_around_ids_are_skipped),
        CHECK_TEST(a_list_without_ids_is_at_its_end)};

    return CHECK_RUN(tests);
}
