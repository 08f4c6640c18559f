/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Output of others beside which the failures of a line alone count; see
 * supervisor/lease/patience.h. */
#include "supervisor_answer.h"

#define LIMIT_SEC 300
#define MB        ((apr_size_t)1024 * 1024)

/* A line of that cost fails every 10 s; in between a line of another run is
 * saved. Returns after how many seconds it has failed for too long. */
static int count_seconds(apr_size_t cost, apr_size_t saved_cost)
{
    agent_patience_saved_t saved = {{0}};
    agent_patience_t patience = {0};
    apr_time_t now = NOW;

    while (!agent_patience_fail(&patience, &saved, cost, now,
                                apr_time_from_sec(LIMIT_SEC))) {
        agent_patience_save(&saved, saved_cost, now + 1);
        now += apr_time_from_sec(10);
    }
    return (int)apr_time_sec(now - NOW);
}

static void a_line_fails_for_its_patience_beside_lines_of_about_its_cost(
    void **state)
{
    assert_int_equal(count_seconds(100000, 100000), LIMIT_SEC);
    assert_int_equal(count_seconds(100000, 70000), LIMIT_SEC);
    assert_int_equal(count_seconds(100000, 40 * MB), LIMIT_SEC);
    assert_int_equal(count_seconds(1, 1), LIMIT_SEC);
    assert_int_equal(count_seconds(SIZE_MAX, SIZE_MAX), LIMIT_SEC);
}

/* The little room that is left on a disk is enough for those. */
static void a_line_fails_for_an_hour_beside_lines_that_cost_less(void **state)
{
    assert_int_equal(count_seconds(100000, 50000), 12 * LIMIT_SEC);
    assert_int_equal(count_seconds(40 * MB, MB), 12 * LIMIT_SEC);
}

/* A line of run 0; not with a reply. */
static void add_kind(const queue_t *q, agent_item_kind_t kind)
{
    agent_batch_add(q->batches, q->fixture->leases[0], kind, "{}", 2, -1);
}

/* The first batch, of run 0, is answered. */
static void answer(queue_t *q, char *outcome)
{
    agent_batch_send_begin(q->batches, first_of(q));
    answer_first(q, &agent_batch_operation, q->fixture->leases[0]->key.run_id,
                 outcome, 1000);
}

/* Whether a failure counts beside it, of a line that costs as much as that
 * number of short ones. */
static bool counts(const queue_t *q, int lines)
{
    agent_patience_t patience = {.failures = 1, .last_at = NOW - 10};

    agent_patience_fail(&patience, &q->save.saved,
                        agent_batch_size_cost(lines, 3), NOW,
                        apr_time_from_sec(LIMIT_SEC));
    return patience.beside_others > 0;
}

static void failures_count_beside_each_kind_of_output_but_ends(void **state)
{
    for (int kind = AGENT_ITEM_METADATA; kind <= AGENT_ITEM_FAILURE; kind++) {
        queue_t *q = make_queue(*state);

        add_kind(q, (agent_item_kind_t)kind);
        answer(q, "saved");
        assert_int_equal(counts(q, 1), kind < AGENT_ITEM_END);
    }
}

/* They fit into room that has none for a long line. */
static void many_short_lines_count_as_one(void **state)
{
    queue_t *q = make_queue(*state);

    for (int i = 0; i < 60; i++) {
        add_kind(q, AGENT_ITEM_EVENT);
    }
    answer(q, "saved");
    assert_true(counts(q, 1));
    assert_false(counts(q, 2));
}

static void output_that_is_not_saved_does_not_count(void **state)
{
    queue_t *q = make_queue(*state);

    q->fixture->leases[0]->state = AGENT_LEASE_GONE;
    add_kind(q, AGENT_ITEM_EVENT);
    answer(q, "fenced");
    assert_false(counts(q, 1));
}

/* The database may have resources again. */
static void an_end_that_is_saved_makes_a_line_due_that_lacked_resources(
    void **state)
{
    queue_t *q = make_logged(*state);

    add_long(q, 1);
    fail_first(q, AGENT_FAILURE_SHORTAGE);
    assert_false(is_dedicated_due(q));
    add_kind(q, AGENT_ITEM_END);
    answer(q, "saved");
    assert_true(is_dedicated_due(q));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(
            a_line_fails_for_its_patience_beside_lines_of_about_its_cost),
        CHECK_TEST(a_line_fails_for_an_hour_beside_lines_that_cost_less),
        CHECK_TEST(failures_count_beside_each_kind_of_output_but_ends),
        CHECK_TEST(many_short_lines_count_as_one),
        CHECK_TEST(output_that_is_not_saved_does_not_count),
        CHECK_TEST(an_end_that_is_saved_makes_a_line_due_that_lacked_resources),
    };

    return CHECK_RUN(tests);
}
