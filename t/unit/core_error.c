/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/error.c */
/* The table of errors: SQLSTATEs, codes, statuses. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/core/error.h"

static void every_code_maps_to_its_error(void **state)
{
    for (int i = 0; i < AGENT_E_COUNT; i++) {
        agent_error_id_t id = (agent_error_id_t)i;
        agent_error_t *err = NULL;

        assert_int_equal(agent_error_from_code(agent_error_code(id)), id);
        assert_in_range(agent_error_http(id), 400, 504);
        agent_error_set(&err, id, NULL, NULL, *state);
        assert_true(strlen(err->detail) > 0);
        assert_int_equal(err->http, agent_error_http(id));
        assert_string_equal(err->members, "");
    }
}

static void an_unknown_code_or_sqlstate_is_an_internal_error(void **state)
{
    assert_int_equal(agent_error_from_code("no_such_code"), AGENT_E_INTERNAL);
    assert_int_equal(agent_error_from_sqlstate("XX000"), AGENT_E_INTERNAL);
    assert_int_equal(agent_error_from_sqlstate("42601"), AGENT_E_INTERNAL);
    assert_int_equal(agent_error_from_sqlstate(NULL), AGENT_E_INTERNAL);
    assert_int_equal(agent_error_from_sqlstate("2"), AGENT_E_INTERNAL);
}

static void an_exact_sqlstate_precedes_its_class(void **state)
{
    assert_int_equal(agent_error_from_sqlstate("22P05"), AGENT_E_NUL_CHARACTER);
    assert_int_equal(agent_error_from_sqlstate("22P02"), AGENT_E_INVALID);
    assert_int_equal(agent_error_from_sqlstate("57014"), AGENT_E_TIMED_OUT);
    assert_int_equal(agent_error_from_sqlstate("57P01"), AGENT_E_UNAVAILABLE);
}

static void check_http(const char *const *states, size_t count, int status)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(agent_error_http(agent_error_from_sqlstate(states[i])),
                         status);
    }
}

static void sqlstates_of_passing_failures_are_503(void **state)
{
    static const char *const states[] = {"08006", "25006", "40001", "40P01",
                                         "53100", "53200", "53300", "55P03",
                                         "57014", "57P01", "57P03"};

    check_http(states, sizeof(states) / sizeof(states[0]), 503);
}

static void sqlstates_of_bad_data_are_422(void **state)
{
    static const char *const states[] = {"22003", "22021", "22P02",
                                         "22P05", "54000", "54001"};

    check_http(states, sizeof(states) / sizeof(states[0]), 422);
}

static void an_error_has_its_own_detail_or_that_of_its_code(void **state)
{
    agent_error_t *err = NULL;

    assert_int_equal(
        agent_error_set(&err, AGENT_E_THREAD_NOT_FOUND, NULL, "why", *state),
        APR_EGENERAL);
    assert_string_equal(err->detail, "Thread not found");
    assert_string_equal(err->cause, "why");
    agent_error_setf(&err, AGENT_E_INVALID, *state, "%s: %d", "x", 3);
    assert_string_equal(err->detail, "x: 3");
    assert_null(err->cause);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(every_code_maps_to_its_error),
        CHECK_TEST(an_unknown_code_or_sqlstate_is_an_internal_error),
        CHECK_TEST(an_exact_sqlstate_precedes_its_class),
        CHECK_TEST(sqlstates_of_passing_failures_are_503),
        CHECK_TEST(sqlstates_of_bad_data_are_422),
        CHECK_TEST(an_error_has_its_own_detail_or_that_of_its_code)};

    return CHECK_RUN(tests);
}
