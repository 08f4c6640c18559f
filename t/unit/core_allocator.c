/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/allocator.c */
/* Private pools: each can be used by another thread than its parent. */
#include "check.h"

#include <pthread.h>
#include <string.h>

#include "../../mod_agent/core/allocator.h"

enum { ROUNDS = 2000, PIECES = 40, PIECE = 1000 };

static void a_private_pool_has_a_new_allocator(void **state)
{
    apr_pool_t *parent = *state;
    apr_pool_t *first = agent_allocator_make_private(parent);
    apr_pool_t *second = agent_allocator_make_private(parent);
    apr_allocator_t *allocator = apr_pool_allocator_get(first);

    assert_ptr_not_equal(allocator, apr_pool_allocator_get(parent));
    assert_ptr_not_equal(allocator, apr_pool_allocator_get(second));
    assert_ptr_equal(apr_allocator_owner_get(allocator), first);
}

/* Allocates, and checks that no other thread has written there; NULL: one has.
 */
static void *use_pool(void *pool)
{
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *pieces[PIECES];

        for (int i = 0; i < PIECES; i++) {
            pieces[i] = apr_palloc(pool, PIECE);
            memset(pieces[i], i, PIECE);
        }
        for (int i = 0; i < PIECES; i++) {
            if (pieces[i][0] != i || pieces[i][PIECE - 1] != i) {
                return NULL;
            }
        }
        apr_pool_clear(pool);
    }
    return pool;
}

static void private_pools_can_be_used_by_two_threads_at_once(void **state)
{
    apr_allocator_t *unlocked;
    apr_pool_t *child;
    apr_pool_t *pools[2];
    pthread_t threads[2];

    /* As httpd's pool of a child. */
    assert_int_equal(apr_allocator_create(&unlocked), APR_SUCCESS);
    apr_pool_create_ex(&child, *state, NULL, unlocked);
    apr_allocator_owner_set(unlocked, child);
    for (int i = 0; i < 2; i++) {
        pools[i] = agent_allocator_make_private(child);
    }
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, use_pool, pools[i]);
    }
    for (int i = 0; i < 2; i++) {
        void *result;

        pthread_join(threads[i], &result);
        assert_ptr_equal(result, pools[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_private_pool_has_a_new_allocator),
        CHECK_TEST(private_pools_can_be_used_by_two_threads_at_once),
    };

    return CHECK_RUN(tests);
}
