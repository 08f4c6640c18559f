/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* The bytes of each deployment, and its share; see supervisor/lease/backlog.h.
 */
#include "supervisor_batches.h"

#define MB ((apr_size_t)1024 * 1024)

static agent_batch_queue_t *make_queue(apr_pool_t *pool)
{
    return &make_fixture(pool)->runs->batches;
}

/* The megabytes that the deployment may have in all. */
static int find_share(agent_batch_queue_t *queue, const char *deployment_id,
                      agent_backlog_kind_t kind)
{
    apr_size_t added = 0;

    while (
        agent_backlog_has_share(&queue->backlogs, deployment_id, kind, 0, MB)) {
        agent_backlog_add(&queue->backlogs, deployment_id, kind, MB);
        added += MB;
    }
    return (int)(added / MB);
}

static void a_deployment_has_half_of_the_room_that_the_others_leave(
    void **state)
{
    agent_batch_queue_t *queue = make_queue(*state);

    assert_int_equal(find_share(queue, "a", AGENT_BACKLOG_DEDICATED), 32);
    assert_int_equal(find_share(queue, "b", AGENT_BACKLOG_DEDICATED), 16);
    assert_int_equal(find_share(queue, "c", AGENT_BACKLOG_DEDICATED), 8);
    assert_int_equal(find_share(queue, "a", AGENT_BACKLOG_SHARED), 16);
    assert_int_equal(find_share(queue, "b", AGENT_BACKLOG_SHARED), 8);
    /* It grows when others have less. */
    agent_backlog_remove(&queue->backlogs, "a", AGENT_BACKLOG_DEDICATED,
                         32 * MB);
    assert_true(agent_backlog_has_share(&queue->backlogs, "b",
                                        AGENT_BACKLOG_DEDICATED, 0, 12 * MB));
    assert_false(agent_backlog_has_share(&queue->backlogs, "b",
                                         AGENT_BACKLOG_DEDICATED, 0, 13 * MB));
}

static void an_account_has_three_quarters_of_the_room_that_others_leave(
    void **state)
{
    agent_batch_queue_t *queue = make_queue(*state);
    int added = 0;

    for (char name[] = "a"; name[0] < 'k'; name[0]++) {
        agent_account_map_set(&queue->accounts, name, "one");
        while (agent_backlog_has_share(&queue->backlogs, name,
                                       AGENT_BACKLOG_DEDICATED, 0, 8 * MB)) {
            agent_backlog_add(&queue->backlogs, name, AGENT_BACKLOG_DEDICATED,
                              8 * MB);
            added += 8;
        }
    }
    assert_int_equal(added, 48);
    assert_true(agent_backlog_has_share(&queue->backlogs, "other",
                                        AGENT_BACKLOG_DEDICATED, 0, 8 * MB));
    /* A deployment that has none may add lines of up to 1 MB, 4 MB in all. */
    assert_true(agent_backlog_has_share(&queue->backlogs, "j",
                                        AGENT_BACKLOG_DEDICATED, 0, MB));
    agent_backlog_add(&queue->backlogs, "j", AGENT_BACKLOG_DEDICATED, 4 * MB);
    assert_false(agent_backlog_has_share(&queue->backlogs, "i",
                                         AGENT_BACKLOG_DEDICATED, 0, 1));
    /* Credit that lapses makes room, also that of the others. */
    agent_backlog_remove(&queue->backlogs, "a", AGENT_BACKLOG_DEDICATED,
                         8 * MB);
    agent_backlog_add(&queue->backlogs, "a", AGENT_BACKLOG_CREDIT, 8 * MB);
    assert_true(
        agent_backlog_has_share_without_credit(&queue->backlogs, "i", 4 * MB));
    assert_false(agent_backlog_has_share_without_credit(&queue->backlogs, "i",
                                                        4 * MB + 1));
}

static void accounts_of_deployments_that_are_not_served_are_forgotten(
    void **state)
{
    agent_batch_queue_t *queue = make_queue(*state);

    for (int i = 0; i < 1000; i++) {
        const char *id = apr_psprintf(*state, "%d", i);

        agent_account_map_clear(&queue->accounts);
        agent_account_map_set(&queue->accounts, id, "one");
        agent_backlog_add(&queue->backlogs, id, AGENT_BACKLOG_DEDICATED, MB);
        assert_int_equal(apr_hash_count(queue->accounts.ids), 1);
        assert_string_equal(agent_account_map_find(&queue->accounts, id),
                            "one");
        /* Its output counts for the account to which it belonged. */
        agent_account_map_set(&queue->accounts, id, "other");
        assert_string_equal(agent_account_map_find(&queue->accounts, id),
                            "other");
        agent_backlog_remove(&queue->backlogs, id, AGENT_BACKLOG_DEDICATED, MB);
        assert_int_equal(queue->backlogs.sums[AGENT_BACKLOG_DEDICATED], 0);
    }
}

static void a_deployment_without_output_may_add_any_line(void **state)
{
    agent_batch_queue_t *queue = make_queue(*state);

    for (char name[] = "a"; name[0] < 'z'; name[0]++) {
        find_share(queue, name, AGENT_BACKLOG_DEDICATED);
    }
    assert_true(agent_backlog_has_share(&queue->backlogs, "z",
                                        AGENT_BACKLOG_DEDICATED, 0, 8 * MB));
    agent_backlog_add(&queue->backlogs, "z", AGENT_BACKLOG_DEDICATED, 8 * MB);
    assert_false(agent_backlog_has_share(&queue->backlogs, "z",
                                         AGENT_BACKLOG_DEDICATED, 0, 1));
}

static void a_run_has_half_of_what_the_other_runs_of_its_deployment_leave(
    void **state)
{
    agent_batch_queue_t *queue = make_queue(*state);

    agent_backlog_add(&queue->backlogs, "a", AGENT_BACKLOG_DEDICATED, 15 * MB);
    assert_true(agent_backlog_has_share(&queue->backlogs, "a",
                                        AGENT_BACKLOG_DEDICATED, 15 * MB, MB));
    assert_false(agent_backlog_has_share(
        &queue->backlogs, "a", AGENT_BACKLOG_DEDICATED, 15 * MB, MB + 1));
    /* Of which the others have 10 MB. */
    assert_true(agent_backlog_has_share(
        &queue->backlogs, "a", AGENT_BACKLOG_DEDICATED, 5 * MB, 6 * MB));
    assert_false(agent_backlog_has_share(
        &queue->backlogs, "a", AGENT_BACKLOG_DEDICATED, 5 * MB, 6 * MB + 1));
    assert_true(agent_backlog_has_share(&queue->backlogs, "a",
                                        AGENT_BACKLOG_DEDICATED, 0, 17 * MB));
}

static void credit_counts_as_what_it_reserves(void **state)
{
    agent_batch_queue_t *queue = make_queue(*state);

    agent_backlog_add(&queue->backlogs, "a", AGENT_BACKLOG_DEDICATED, 4 * MB);
    agent_backlog_add(&queue->backlogs, "a", AGENT_BACKLOG_CREDIT, 25 * MB);
    assert_false(agent_backlog_has_share(&queue->backlogs, "a",
                                         AGENT_BACKLOG_DEDICATED, 0, 4 * MB));
    assert_true(
        agent_backlog_has_share_without_credit(&queue->backlogs, "a", 28 * MB));
    assert_false(agent_backlog_has_share_without_credit(&queue->backlogs, "a",
                                                        28 * MB + 1));
    assert_int_equal(find_share(queue, "b", AGENT_BACKLOG_DEDICATED), 17);
}

static void output_of_others_leaves_half_of_a_share_free(void **state)
{
    agent_batch_queue_t *queue = make_queue(*state);

    find_share(queue, "a", AGENT_BACKLOG_DEDICATED);
    assert_false(agent_backlog_is_half_free(&queue->backlogs, "a", 0));
    assert_true(agent_backlog_is_half_free(&queue->backlogs, "b", 8 * MB - 1));
    assert_false(agent_backlog_is_half_free(&queue->backlogs, "b", 8 * MB));
    queue->backlogs.sums[AGENT_BACKLOG_DEDICATED] += AGENT_BATCH_MAX_DEDICATED;
    assert_true(agent_backlog_is_half_free(&queue->backlogs, "b", 0));
}

static bool has_all_room(const agent_batch_queue_t *queue,
                         const agent_lease_t *lease, agent_backlog_kind_t kind)
{
    return agent_backlog_has_share(&queue->backlogs, lease->deployment_id, kind,
                                   0, 100 * MB);
}

static void output_is_counted_until_its_batch_is_discarded(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;
    const agent_lease_t *lease = fixture->leases[0];

    add_line(fixture, 0, 1000);
    add_line(fixture, 1, 1000);
    add_long_line(fixture, 2);
    agent_batch_add(queue, fixture->other, AGENT_ITEM_END, "{}", 2, -1);
    assert_false(has_all_room(queue, lease, AGENT_BACKLOG_SHARED));
    assert_false(has_all_room(queue, lease, AGENT_BACKLOG_DEDICATED));
    assert_false(has_all_room(queue, fixture->other, AGENT_BACKLOG_SHARED));
    assert_true(has_all_room(queue, fixture->other, AGENT_BACKLOG_DEDICATED));
    /* Lines of a batch that is split move to dedicated ones. */
    agent_batch_split_by_run(queue, first_batch(queue));
    assert_true(has_all_room(queue, lease, AGENT_BACKLOG_SHARED));
    assert_false(has_all_room(queue, fixture->other, AGENT_BACKLOG_DEDICATED));
    assert_int_equal(queue->backlogs.sums[AGENT_BACKLOG_SHARED], 0);
    assert_int_equal(queue->backlogs.sums[AGENT_BACKLOG_DEDICATED],
                     1001 + 1001 + AGENT_BATCH_LONG_LINE + 2 + 3
                         + 4 * AGENT_BATCH_ITEM_BYTES
                         + 4 * AGENT_BATCH_OWN_BYTES);
    agent_batch_clear(queue);
    assert_int_equal(queue->backlogs.sums[AGENT_BACKLOG_DEDICATED], 0);
    assert_true(has_all_room(queue, lease, AGENT_BACKLOG_DEDICATED));
    assert_true(has_all_room(queue, fixture->other, AGENT_BACKLOG_DEDICATED));
}

static void room_is_reserved_for_one_iteration(void **state)
{
    agent_batch_queue_t *queue = make_queue(*state);

    agent_backlog_add(&queue->backlogs, "a", AGENT_BACKLOG_DEDICATED, 1);
    agent_backlog_add(&queue->backlogs, "b", AGENT_BACKLOG_DEDICATED, 1);
    assert_false(agent_backlog_is_reserved(&queue->backlogs, "a"));
    agent_backlog_reserve(&queue->backlogs, "a");
    assert_true(agent_backlog_is_reserved(&queue->backlogs, "a"));
    assert_false(agent_backlog_is_reserved(&queue->backlogs, "b"));
    agent_backlog_begin_iteration(&queue->backlogs);
    assert_false(agent_backlog_is_reserved(&queue->backlogs, "a"));
    /* The memory of one without bytes is used again. */
    agent_backlog_reserve(&queue->backlogs, "a");
    agent_backlog_remove(&queue->backlogs, "a", AGENT_BACKLOG_DEDICATED, 1);
    agent_backlog_add(&queue->backlogs, "c", AGENT_BACKLOG_DEDICATED, 1);
    assert_false(agent_backlog_is_reserved(&queue->backlogs, "c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_deployment_has_half_of_the_room_that_the_others_leave),
        CHECK_TEST(an_account_has_three_quarters_of_the_room_that_others_leave),
        CHECK_TEST(accounts_of_deployments_that_are_not_served_are_forgotten),
        CHECK_TEST(a_deployment_without_output_may_add_any_line),
        CHECK_TEST(
            a_run_has_half_of_what_the_other_runs_of_its_deployment_leave),
        CHECK_TEST(credit_counts_as_what_it_reserves),
        CHECK_TEST(output_of_others_leaves_half_of_a_share_free),
        CHECK_TEST(output_is_counted_until_its_batch_is_discarded),
        CHECK_TEST(room_is_reserved_for_one_iteration),
    };

    return CHECK_RUN(tests);
}
