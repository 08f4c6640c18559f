/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* The queue of output that is not committed; see supervisor/lease/batch.h. */
#include "supervisor_batches.h"

#include <apr_strings.h>

static void short_lines_share_a_batch(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    add_line(fixture, 0, 100);
    add_line(fixture, 1, 100);
    add_line(fixture, 0, 100);
    assert_string_equal(describe(fixture), " s3");
}

static void a_long_line_and_later_lines_of_its_run_use_a_dedicated_batch(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);

    add_line(fixture, 0, 100);
    add_long_line(fixture, 0);
    add_line(fixture, 0, 100);
    add_line(fixture, 1, 100);
    assert_string_equal(describe(fixture), " s2 d2");
}

static void a_dedicated_batch_makes_earlier_lines_of_its_run_due_at_once(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    runs->context->now = apr_time_from_sec(1);
    runs->batches.sent_at = runs->context->now;
    agent_batch_add(&runs->batches, fixture->leases[0], AGENT_ITEM_EVENT,
                    "{\"x\":1}", 7, -1);
    assert_true(first_batch(&runs->batches)->due_at > runs->context->now);
    add_long_line(fixture, 0);
    assert_int_equal(first_batch(&runs->batches)->due_at, runs->context->now);
}

static void a_shared_batch_has_at_most_500_lines_and_256_kb(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    for (int i = 0; i <= AGENT_BATCH_MAX_ITEMS; i++) {
        add_line(fixture, 0, 100);
    }
    assert_string_equal(describe(fixture), " s500 s1");
    for (int i = 0; i < 4; i++) {
        add_line(fixture, 0, AGENT_BATCH_LONG_LINE);
    }
    assert_string_equal(describe(fixture), " s500 s4 s1");
}

static void the_queue_is_full_at_32_mb_of_short_lines_or_96_mb(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;

    batches->backlogs.sums[AGENT_BACKLOG_SHARED] = AGENT_BATCH_MAX_SHARED - 1;
    batches->backlogs.sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED;
    assert_false(agent_batch_is_full(batches));
    /* A split moves lines into dedicated batches and makes no room. */
    batches->backlogs.sums[AGENT_BACKLOG_SHARED] -= 1000;
    batches->backlogs.sums[AGENT_BACKLOG_DEDICATED] += 1000;
    assert_false(agent_batch_is_full(batches));
    batches->backlogs.sums[AGENT_BACKLOG_DEDICATED]++;
    assert_true(agent_batch_is_full(batches));
    batches->backlogs.sums[AGENT_BACKLOG_DEDICATED] = 0;
    batches->backlogs.sums[AGENT_BACKLOG_SHARED] = AGENT_BATCH_MAX_SHARED;
    assert_true(agent_batch_is_full(batches));
}

static void unsent_output_of_a_run_is_discarded_under_all_leases(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    const agent_lease_key_t *key = &fixture->leases[0]->key;
    apr_array_header_t *discarded = apr_array_make(*state, 4, sizeof(*key));

    add_line(fixture, 0, 100);
    add_line(fixture, 1, 100);
    add_long_line(fixture, 0);
    agent_batch_discard(batches, key->run_id, 0, discarded);
    assert_int_equal(discarded->nelts, 2);
    assert_false(agent_batch_has_run(batches, key->run_id));
    assert_true(agent_batch_has_run(batches, fixture->leases[1]->key.run_id));
    /* The dedicated batch had no other run. */
    assert_string_equal(describe(fixture), " s2");
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_DEDICATED], 0);
}

static void output_in_flight_is_not_discarded(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;

    add_line(fixture, 0, 100);
    first_batch(batches)->is_sent = true;
    agent_batch_discard(batches, fixture->leases[0]->key.run_id, 0, NULL);
    assert_true(agent_batch_has_run(batches, fixture->leases[0]->key.run_id));
}

/* Its release has to wait for the batch in flight. */
static void a_run_has_output_while_its_first_dedicated_batch_is_in_flight(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    const char *run_id = fixture->leases[0]->key.run_id;

    add_long_line(fixture, 0);
    agent_batch_send_begin(batches, first_batch(batches));
    add_long_line(fixture, 0);
    assert_string_equal(describe(fixture), " d1 d1");
    agent_batch_discard(batches, run_id, 0, NULL);
    assert_string_equal(describe(fixture), " d1");
    assert_true(agent_batch_has_run(batches, run_id));
    agent_batch_remove(batches, first_batch(batches));
    assert_false(agent_batch_has_run(batches, run_id));
}

static void discarded_batches_are_not_counted(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;

    add_line(fixture, 0, 100);
    add_long_line(fixture, 1);
    assert_true(batches->backlogs.sums[AGENT_BACKLOG_SHARED] > 0
                && batches->backlogs.sums[AGENT_BACKLOG_DEDICATED] > 0);
    agent_batch_clear(batches);
    assert_true(agent_batch_is_empty(batches));
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_SHARED], 0);
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_DEDICATED], 0);
    assert_int_equal(count_dedicated(batches), 0);
}

static void add_record(agent_batch_queue_t *queue, agent_lease_t *lease,
                       apr_int64_t ack)
{
    agent_batch_add(queue, lease, AGENT_ITEM_RECORD, "{\"x\":1}", 7, ack);
}

static void records_are_numbered_and_those_with_an_ack_due_now(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_lease_t *lease = fixture->leases[0];
    const agent_batch_t *batch;

    runs->context->now = apr_time_from_sec(1);
    runs->batches.sent_at = runs->context->now;
    add_record(&runs->batches, lease, -1);
    agent_batch_add(&runs->batches, lease, AGENT_ITEM_EVENT, "{\"x\":1}", 7,
                    -1);
    batch = first_batch(&runs->batches);
    assert_true(batch->due_at > runs->context->now);
    agent_batch_flush_run(&runs->batches, fixture->leases[1]->key.run_id);
    assert_true(batch->due_at > runs->context->now);
    add_record(&runs->batches, lease, 0);
    assert_int_equal(batch->due_at, runs->context->now);
    assert_int_equal(lease->records.sent, 2);
    assert_int_equal(agent_batch_item(batch, 2)->run->last_record, 2);
    assert_string_equal(agent_buffer_text(&batch->text),
                        "{\"x\":1}\n{\"x\":1}\n{\"x\":1}\n");
}

static void a_checkpoint_waits_2_ms_and_an_end_does_not(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    const agent_batch_t *batch;

    runs->context->now = apr_time_from_sec(1);
    runs->batches.sent_at = runs->context->now;
    agent_batch_add(&runs->batches, fixture->leases[0], AGENT_ITEM_CHECKPOINT,
                    "{\"x\":1}", 7, -1);
    batch = first_batch(&runs->batches);
    assert_int_equal(batch->due_at, runs->context->now + apr_time_from_msec(2));
    add_line(fixture, 0, 100);
    assert_int_equal(batch->due_at, runs->context->now);
}

/* At most 40 commits a second for events alone, and no wait after a pause. */
static void events_are_due_25_ms_after_the_last_batch_2_ms_after_a_pause(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    apr_time_t *now = &fixture->runs->context->now;

    batches->sent_at = apr_time_from_sec(1);
    *now = batches->sent_at + apr_time_from_msec(1);
    agent_batch_add(batches, fixture->leases[0], AGENT_ITEM_EVENT, "{}", 2, -1);
    assert_int_equal(first_batch(batches)->due_at,
                     batches->sent_at + apr_time_from_msec(25));
    agent_batch_clear(batches);
    *now = batches->sent_at + apr_time_from_sec(1);
    agent_batch_add(batches, fixture->leases[0], AGENT_ITEM_EVENT, "{}", 2, -1);
    assert_int_equal(first_batch(batches)->due_at,
                     *now + apr_time_from_msec(2));
}

static void a_request_for_records_makes_them_due_now(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    runs->context->now = apr_time_from_sec(1);
    runs->batches.sent_at = runs->context->now;
    add_record(&runs->batches, fixture->leases[0], -1);
    agent_batch_flush_run(&runs->batches, fixture->leases[0]->key.run_id);
    assert_int_equal(first_batch(&runs->batches)->due_at, runs->context->now);
}

static void a_split_keeps_the_replies_that_records_get(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    const agent_batch_t *batch;

    add_line(fixture, 1, 100);
    add_record(batches, fixture->leases[0], 5);
    add_record(batches, fixture->leases[0], -1);
    agent_batch_split_by_run(batches, first_batch(batches));
    batch = last_batch(batches);
    assert_int_equal(agent_batch_item(batch, 0)->ack, 5);
    assert_int_equal(agent_batch_item(batch, 1)->ack, -1);
    assert_int_equal(agent_batch_item(batch, 1)->run->last_record, 2);
}

/* The first items of a dedicated batch, a record and an event in turn. */
static agent_batch_t *make_pairs(const fixture_t *fixture, int pairs)
{
    agent_batch_queue_t *batches = &fixture->runs->batches;
    agent_lease_t *lease = fixture->leases[0];

    lease->is_refused = true;
    for (int i = 0; i < pairs; i++) {
        add_record(batches, lease, i);
        agent_batch_add(batches, lease, AGENT_ITEM_EVENT, "{\"y\":1}", 7, -1);
    }
    return first_batch(batches);
}

/* Else 32 MB of lines of 80 bytes would have 200 MB. */
static void lines_and_parts_of_a_shared_batch_count_with_their_memory(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;

    add_line(fixture, 0, 80);
    add_line(fixture, 0, 80);
    add_line(fixture, 1, 80);
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_SHARED],
                     3 * (81 + AGENT_BATCH_ITEM_BYTES)
                         + 2 * AGENT_BATCH_PART_BYTES);
    agent_batch_discard(batches, fixture->leases[0]->key.run_id, 0, NULL);
    agent_batch_discard(batches, fixture->leases[1]->key.run_id, 0, NULL);
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_SHARED], 0);
}

static void each_part_of_a_split_by_cost_has_twice_the_cost(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    agent_batch_t *batch = make_pairs(fixture, 10);
    apr_size_t bytes = batches->backlogs.sums[AGENT_BACKLOG_DEDICATED];

    assert_ptr_equal(
        agent_batch_split_by_cost(batches, batch, AGENT_BATCH_SIZE_MAX), batch);
    batch = agent_batch_split_by_cost(batches, batch,
                                      agent_batch_size_cost(2, 16));
    assert_string_equal(describe(fixture), " d2 d4 d8 d6");
    assert_ptr_equal(batch, first_batch(batches));
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_DEDICATED],
                     bytes + 3 * AGENT_BATCH_OWN_BYTES);
    /* Later lines are added to the last one. */
    add_line(fixture, 0, 100);
    assert_string_equal(describe(fixture), " d2 d4 d8 d7");
}

static void a_split_by_cost_keeps_the_numbers_and_replies_of_lines(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    agent_batch_t *batch = make_pairs(fixture, 3);
    const agent_item_t *item;

    add_line(fixture, 0, 100);
    batch = agent_batch_split_by_cost(batches, batch,
                                      agent_batch_size_cost(3, 24));
    assert_string_equal(describe(fixture), " d3 d4");
    item = agent_batch_item(batch, 2);
    assert_int_equal(item->ack, 1);
    assert_int_equal(item->run->last_record, 2);
    assert_int_equal(item->run->last_seq, fixture->leases[0]->next_seq - 3);
    assert_int_equal(item->run->line_bytes, 24);
    assert_false(item->run->has_end);
    assert_string_equal(agent_buffer_text(&batch->text),
                        "{\"x\":1}\n{\"y\":1}\n{\"x\":1}\n");
    batch = APR_RING_NEXT(batch, link);
    item = agent_batch_item(batch, 0);
    assert_int_equal(item->run->last_record, 3);
    assert_int_equal(item->run->last_seq, fixture->leases[0]->next_seq - 1);
    assert_true(item->run->has_end);
    assert_memory_equal(agent_buffer_text(&batch->text), "{\"y\":1}\n{", 9);
}

static void a_split_by_cost_leaves_at_least_one_line(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;

    add_long_line(fixture, 0);
    add_long_line(fixture, 0);
    agent_batch_split_by_cost(batches, first_batch(batches), 1);
    assert_string_equal(describe(fixture), " d1 d1");
    agent_batch_split_by_cost(batches, first_batch(batches), 1);
    assert_string_equal(describe(fixture), " d1 d1");
}

static void a_run_that_made_a_batch_slow_uses_dedicated_batches_for_a_while(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    apr_time_t *now = &fixture->runs->context->now;

    agent_batch_size_dedicate(&fixture->leases[0]->batch_size, *now);
    add_line(fixture, 0, 100);
    add_line(fixture, 1, 100);
    assert_string_equal(describe(fixture), " s1 d1");
    agent_batch_clear(&fixture->runs->batches);
    *now += apr_time_from_sec(60);
    add_line(fixture, 0, 100);
    assert_string_equal(describe(fixture), " s1");
}

static void shared_batches_shrink_to_63_lines_after_a_slow_one(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    agent_batch_size_save(&fixture->runs->batches.batch_size, 500,
                          apr_time_from_sec(1));
    for (int i = 0; i < 64; i++) {
        add_line(fixture, 0, 100);
    }
    assert_string_equal(describe(fixture), " s63 s1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(short_lines_share_a_batch),
        CHECK_TEST(
            a_long_line_and_later_lines_of_its_run_use_a_dedicated_batch),
        CHECK_TEST(
            a_dedicated_batch_makes_earlier_lines_of_its_run_due_at_once),
        CHECK_TEST(a_shared_batch_has_at_most_500_lines_and_256_kb),
        CHECK_TEST(the_queue_is_full_at_32_mb_of_short_lines_or_96_mb),
        CHECK_TEST(unsent_output_of_a_run_is_discarded_under_all_leases),
        CHECK_TEST(output_in_flight_is_not_discarded),
        CHECK_TEST(
            a_run_has_output_while_its_first_dedicated_batch_is_in_flight),
        CHECK_TEST(discarded_batches_are_not_counted),
        CHECK_TEST(records_are_numbered_and_those_with_an_ack_due_now),
        CHECK_TEST(a_checkpoint_waits_2_ms_and_an_end_does_not),
        CHECK_TEST(
            events_are_due_25_ms_after_the_last_batch_2_ms_after_a_pause),
        CHECK_TEST(a_request_for_records_makes_them_due_now),
        CHECK_TEST(a_split_keeps_the_replies_that_records_get),
        CHECK_TEST(lines_and_parts_of_a_shared_batch_count_with_their_memory),
        CHECK_TEST(each_part_of_a_split_by_cost_has_twice_the_cost),
        CHECK_TEST(a_split_by_cost_keeps_the_numbers_and_replies_of_lines),
        CHECK_TEST(a_split_by_cost_leaves_at_least_one_line),
        CHECK_TEST(
            a_run_that_made_a_batch_slow_uses_dedicated_batches_for_a_while),
        CHECK_TEST(shared_batches_shrink_to_63_lines_after_a_slow_one),
    };

    return CHECK_RUN(tests);
}
