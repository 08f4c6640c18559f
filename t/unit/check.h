/* SPDX-License-Identifier: Apache-2.0 */
/* Included by every unit test: cmocka and the headers that it needs before it,
 * a pool for each test, and TAP as the output. */
#ifndef AGENT_T_UNIT_CHECK_H
#define AGENT_T_UNIT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <apr_general.h>
#include <apr_pools.h>

static int check_make_pool(void **state)
{
    apr_pool_t *pool;

    apr_pool_create(&pool, NULL);
    *state = pool;
    return 0;
}

static int check_drop_pool(void **state)
{
    apr_pool_destroy(*state);
    return 0;
}

/* A test that finds its pool in *state. */
#define CHECK_TEST(function)                                                   \
    cmocka_unit_test_setup_teardown(function, check_make_pool, check_drop_pool)

#define CHECK_RUN(tests)                                                       \
    (apr_initialize(), cmocka_set_message_output(CM_OUTPUT_TAP),               \
     cmocka_run_group_tests(tests, NULL, NULL))

#endif
