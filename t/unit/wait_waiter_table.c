/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: wait/waiter_table.c wait/slot_share.c wait/client_address.c */
/* The limits of an account on its waiters. */
#include "check.h"

#include "../../mod_agent/wait/waiter_table.h"

#define RUN   "01900000-0000-7000-8000-000000000001"
#define OTHER "01900000-0000-7000-8000-000000000002"

static agent_waiter_table_t *make_table(apr_pool_t *pool)
{
    const agent_waiter_limits_t limits = {.parked = 20, .blocked = 1};
    agent_waiter_table_t *table = apr_pcalloc(pool, sizeof(*table));

    agent_waiter_table_init(table, &limits, pool);
    return table;
}

/* Adds a waiter of an account that may have two, and one stream; NULL when it
 * is refused. */
static agent_waiter_t *add(agent_waiter_table_t *table, const char *account,
                           bool is_stream, apr_pool_t *pool)
{
    agent_waiter_t *waiter = apr_pcalloc(pool, sizeof(*waiter));
    agent_error_id_t refusal = AGENT_E_INTERNAL;

    waiter->params = (agent_waiter_params_t){.key = RUN,
                                             .deployment_id = RUN,
                                             .account = {account, 2, 1},
                                             .client_fd = -1,
                                             .is_stream = is_stream,
                                             .parked = true};
    if (!agent_waiter_table_accepts_locked(&refusal, table, &waiter->params)) {
        assert_int_equal(refusal, AGENT_E_LIMIT);
        return NULL;
    }
    agent_waiter_table_add_locked(table, waiter);
    return waiter;
}

static void an_account_has_as_many_waiters_and_streams_as_its_limits(
    void **state)
{
    apr_pool_t *pool = *state;
    agent_waiter_table_t *table = make_table(pool);
    agent_waiter_t *waiter;

    assert_non_null(add(table, RUN, false, pool));
    waiter = add(table, RUN, false, pool);
    assert_non_null(waiter);
    assert_null(add(table, RUN, false, pool));
    assert_non_null(add(table, RUN, true, pool));
    assert_null(add(table, RUN, true, pool));
    assert_non_null(add(table, OTHER, true, pool));
    agent_waiter_table_remove_locked(table, waiter);
    assert_non_null(add(table, RUN, false, pool));
    assert_null(add(table, RUN, false, pool));
}

static void an_account_without_limits_has_any_number(void **state)
{
    apr_pool_t *pool = *state;
    agent_waiter_table_t *table = make_table(pool);

    for (int i = 0; i < 10; i++) {
        assert_non_null(add(table, NULL, i % 2 == 0, pool));
    }
}

static agent_waiter_params_t params_of(const char *deployment)
{
    return (agent_waiter_params_t){.key = RUN,
                                   .deployment_id = deployment,
                                   .client_fd = -1,
                                   .parked = true};
}

static void add_params(agent_waiter_table_t *table,
                       const agent_waiter_params_t *params, apr_pool_t *pool)
{
    agent_waiter_t *waiter = apr_pcalloc(pool, sizeof(*waiter));

    waiter->params = *params;
    agent_waiter_table_add_locked(table, waiter);
}

static void those_of_no_deployment_leave_what_is_guaranteed_to_each(
    void **state)
{
    apr_pool_t *pool = *state;
    const agent_waiter_limits_t limits = {.parked = 20, .deployments = 2};
    agent_waiter_table_t *table = apr_pcalloc(pool, sizeof(*table));
    const agent_waiter_params_t none = params_of(NULL);
    const agent_waiter_params_t own = params_of(RUN);
    agent_error_id_t refusal = AGENT_E_INTERNAL;

    agent_waiter_table_init(table, &limits, pool);
    for (int i = 0; i < 10; i++) {
        assert_true(agent_waiter_table_accepts_locked(&refusal, table, &none));
        add_params(table, &none, pool);
    }
    assert_false(agent_waiter_table_accepts_locked(&refusal, table, &none));
    assert_int_equal(refusal, AGENT_E_OVERLOADED);
    for (int i = 0; i < 5; i++) {
        assert_true(agent_waiter_table_accepts_locked(&refusal, table, &own));
        add_params(table, &own, pool);
    }
    assert_false(agent_waiter_table_accepts_locked(&refusal, table, &own));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(an_account_has_as_many_waiters_and_streams_as_its_limits),
        CHECK_TEST(an_account_without_limits_has_any_number),
        CHECK_TEST(those_of_no_deployment_leave_what_is_guaranteed_to_each)};

    return CHECK_RUN(tests);
}
