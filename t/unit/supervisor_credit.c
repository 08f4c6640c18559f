/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Flow control: when a run gets credit; see supervisor/runner/run/credit.h. */
#include "supervisor_fixture.h"

#include "../../mod_agent/supervisor/runner/io/io.h"
#include "../../mod_agent/supervisor/runner/io/line.h"
#include "../../mod_agent/supervisor/runner/run/run_end.h"

static int count_go(const fixture_t *fixture)
{
    return read_go(fixture->runner);
}

static void credit_is_given_in_the_order_of_requests(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    request_all(fixture);
    assert_false(agent_credit_request(&runs->credits, fixture->leases[8], 1));
    agent_credit_step(&runs->credits);
    assert_int_equal(count_go(fixture), 2);
    assert_int_equal(fixture->leases[1]->credit.granted, BIG);
    assert_int_equal(agent_credit_used(&runs->credits), 2 * BIG);
    /* Credit that was used is free again; the dedicated batches are empty here.
     */
    agent_credit_spend(&runs->credits, fixture->leases[0], 2 * BIG);
    assert_int_equal(agent_credit_used(&runs->credits), BIG);
    agent_credit_step(&runs->credits);
    assert_int_equal(count_go(fixture), 1);
    assert_int_equal(fixture->leases[2]->credit.granted, BIG);
}

static void a_line_without_credit_leaves_the_next_room_to_runs_that_wait(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    runs->batches.backlogs
        .sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED - BIG - 1;
    assert_true(agent_credit_allows(&runs->credits, fixture->other, BIG));
    assert_false(agent_credit_allows(&runs->credits, fixture->other, BIG + 1));
    request(fixture, fixture->leases[0], BIG + 2);
    assert_int_equal(count_go(fixture), 0);
    assert_int_equal(agent_credit_wanted(&fixture->runner->group), BIG + 2);
    assert_false(agent_credit_allows(&runs->credits, fixture->other, BIG));
}

static void a_line_of_1_mb_does_not_wait_behind_longer_ones(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    runs->batches.backlogs
        .sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED;
    request(fixture, fixture->leases[0], BIG);
    assert_int_equal(count_go(fixture), 0);
    assert_false(agent_credit_allows(&runs->credits, fixture->other,
                                     AGENT_CREDIT_MEDIUM));
    assert_true(agent_credit_allows(&runs->credits, fixture->other,
                                    AGENT_CREDIT_MEDIUM - 1));
    request(fixture, fixture->other, AGENT_CREDIT_MEDIUM);
    assert_int_equal(fixture->other->credit.granted, AGENT_CREDIT_MEDIUM);
    /* Such lines have 4 MB more than others. */
    runs->batches.backlogs.sums[AGENT_BACKLOG_MEDIUM] = AGENT_BATCH_MEDIUM_ROOM;
    assert_false(agent_credit_allows(&runs->credits, fixture->leases[1],
                                     AGENT_CREDIT_MEDIUM - 1));
    /* The longer one has its room as before. */
    runs->batches.backlogs
        .sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED - BIG;
    agent_credit_step(&runs->credits);
    assert_int_equal(fixture->leases[0]->credit.granted, BIG);
}

static void a_run_that_waits_for_its_own_output_takes_no_room(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    fixture->leases[0]->credit.unsaved = AGENT_CREDIT_UNSAVED + 1;
    request(fixture, fixture->leases[0], BIG);
    assert_int_equal(count_go(fixture), 0);
    assert_int_equal(agent_credit_wanted(&fixture->runner->group), 0);
    assert_true(agent_credit_allows(&runs->credits, fixture->other, BIG));
}

static void a_runner_does_not_wait_for_credit_that_another_does_not_use(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    request_all(fixture);
    agent_credit_step(&runs->credits);
    assert_true(agent_credit_allows(&runs->credits, fixture->other, BIG));
    request(fixture, fixture->other, BIG);
    assert_int_equal(fixture->other->credit.granted, BIG);
    assert_int_equal(agent_credit_wanted(fixture->other->group), 0);
}

static void a_line_of_1_mb_does_not_wait_for_longer_ones(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_lease_t *lease = add_lease(runs, fixture->runner, 'a');

    request_all(fixture);
    request(fixture, lease, AGENT_CREDIT_MEDIUM);
    assert_int_equal(lease->credit.granted, AGENT_CREDIT_MEDIUM);
}

static void runners_take_turns(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    /* Room for one at a time. */
    runs->batches.backlogs
        .sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED - BIG;
    request_all(fixture);
    request(fixture, fixture->other, BIG);
    assert_int_equal(count_go(fixture), 1);
    agent_credit_spend(&runs->credits, fixture->leases[0], BIG);
    agent_credit_step(&runs->credits);
    assert_int_equal(count_go(fixture), 0);
    assert_int_equal(fixture->other->credit.granted, BIG);
    agent_credit_spend(&runs->credits, fixture->other, BIG);
    agent_credit_step(&runs->credits);
    assert_int_equal(fixture->leases[1]->credit.granted, BIG);
}

static void a_run_may_not_request_credit_before_it_read_go(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    for (int i = 0; i < 2; i++) {
        fixture->leases[i]->state = i == 0 ? AGENT_LEASE_HELD
                                           : AGENT_LEASE_GONE;
        request(fixture, fixture->leases[i], 1000);
        assert_false(
            agent_credit_request(&runs->credits, fixture->leases[i], 1000));
        assert_int_equal(count_go(fixture), 1);
        request(fixture, fixture->leases[i], 1000);
        assert_int_equal(count_go(fixture), 1);
    }
}

static void a_run_that_is_no_longer_held_does_not_wait_for_credit(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    runs->batches.backlogs
        .sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED;
    request(fixture, fixture->leases[0], BIG);
    assert_int_equal(count_go(fixture), 0);
    agent_credit_release(&runs->credits, fixture->leases[0]);
    assert_int_equal(count_go(fixture), 1);
    agent_credit_step(&runs->credits);
    assert_int_equal(agent_credit_wanted(&fixture->runner->group), 0);
    assert_int_equal(agent_credit_used(&runs->credits),
                     AGENT_BATCH_MAX_DEDICATED);
    fixture->leases[0]->state = AGENT_LEASE_GONE;
    assert_true(agent_credit_request(&runs->credits, fixture->leases[0], BIG));
    assert_int_equal(count_go(fixture), 1);
}

/* Adds short lines of 1 KB, `bytes` in all. */
static void add_lines(const fixture_t *fixture, agent_lease_t *lease,
                      apr_size_t bytes)
{
    char line[1024];

    memset(line, ' ', sizeof(line));
    line[0] = '{';
    line[sizeof(line) - 1] = '}';
    for (apr_size_t at = 0; at < bytes; at += sizeof(line)) {
        agent_batch_add(&fixture->runs->batches, lease, AGENT_ITEM_EVENT, line,
                        sizeof(line), -1);
    }
}

static void a_run_goes_on_when_what_it_sent_is_saved(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_lease_t *loud = fixture->leases[0];

    add_lines(fixture, loud, AGENT_CREDIT_UNSAVED * 4);
    assert_true(loud->credit.unsaved >= AGENT_CREDIT_UNSAVED * 4);
    agent_credit_request(&runs->credits, loud, 1000);
    request(fixture, fixture->leases[1], 1000);
    assert_int_equal(count_go(fixture), 1);
    assert_int_equal(fixture->leases[1]->credit.wanted, 0);
    assert_int_equal(loud->credit.wanted, 1000);
    loud->credit.unsaved = AGENT_CREDIT_UNSAVED;
    agent_credit_step(&runs->credits);
    assert_int_equal(count_go(fixture), 1);
}

static void a_run_with_512_kb_unsaved_needs_credit(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_lease_t *loud = fixture->leases[0];

    add_lines(fixture, loud, AGENT_BATCH_MAX_RUN / 2);
    assert_true(agent_credit_allows(&runs->credits, loud, 1000));
    add_lines(fixture, loud, AGENT_BATCH_MAX_RUN / 2);
    assert_false(agent_credit_allows(&runs->credits, loud, 1000));
    assert_true(agent_credit_allows(&runs->credits, fixture->leases[1], 1000));
    loud->credit.granted = 2000;
    assert_true(agent_credit_allows(&runs->credits, loud, 1000));
}

#define RUN_ID "00000000-0000-0000-0000-000000000000"

static agent_lease_t *add_named(const fixture_t *fixture)
{
    agent_lease_key_t key = {.epoch = 1};

    memcpy(key.run_id, RUN_ID, 36);
    return agent_lease_add(&fixture->runs->leases, &key,
                           &fixture->runner->group);
}

static void a_want_line_is_taken_however_much_is_unsaved(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_lease_t *lease = add_named(fixture);
    const char *line = "{\"type\":\"want\",\"run_id\":\"" RUN_ID "\","
                       "\"epoch\":1,\"bytes\":1000}";

    /* It has credit for all it sends. */
    request(fixture, lease, BIG);
    count_go(fixture);
    add_lines(fixture, lease, AGENT_BATCH_MAX_RUN);
    agent_credit_spend(&runs->credits, lease, BIG);
    assert_true(agent_runner_line_take(fixture->io, fixture->runner, line,
                                       strlen(line), false));
}

static void short_lines_into_a_dedicated_batch_are_bounded_for_each_run(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_lease_t *lease = fixture->leases[0];
    apr_size_t length = AGENT_BATCH_LONG_LINE + 1000;
    char *line = apr_palloc(*state, length);

    memset(line, ' ', length);
    line[0] = '{';
    line[length - 1] = '}';
    agent_batch_add(&runs->batches, lease, AGENT_ITEM_EVENT, line, length, -1);
    add_lines(fixture, lease, AGENT_BATCH_MAX_DEDICATED);
    assert_true(runs->batches.backlogs.sums[AGENT_BACKLOG_DEDICATED]
                > AGENT_BATCH_MAX_DEDICATED);
    assert_false(agent_credit_allows(&runs->credits, lease, 1000));
}

static void short_lines_do_not_wait_for_the_dedicated_batches(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    runs->batches.backlogs
        .sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED;
    request(fixture, fixture->leases[0], 300);
    assert_int_equal(count_go(fixture), 1);
}

static void output_of_an_older_lease_does_not_count(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    fixture->leases[0]->credit.unsaved = 1000;
    agent_credit_save(fixture->leases[0], 600);
    agent_credit_save(fixture->leases[0], 600);
    assert_int_equal(fixture->leases[0]->credit.unsaved, 0);
}

static void output_under_the_epoch_of_a_lost_claim_is_dropped(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_lease_t *lease = fixture->leases[0];
    agent_lease_key_t key = lease->key;

    add_lines(fixture, lease, 2 * AGENT_CREDIT_UNSAVED);
    agent_run_end_set_state(runs, lease, AGENT_LEASE_GONE);
    agent_run_end_detach(runs, lease);
    assert_null(agent_lease_find(&runs->leases, &key));
    agent_run_end_discard_output(runs, key.run_id);
    assert_false(agent_batch_has_run(&runs->batches, key.run_id));
}

static void a_run_that_requests_credit_in_time_is_never_held(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    const char *line = "{\"type\":\"event\",\"run_id\":\"" RUN_ID "\","
                       "\"epoch\":1,\"event\":\"custom\","
                       "\"data\":{\"token\":1}}";
    apr_size_t length = strlen(line);

    memcpy(fixture->leases[0]->deployment_id, RUN_ID, 37);
    /* Bytes that may be uncommitted at a `go`, and may be sent until the next.
     */
    for (apr_size_t said = 0;
         said + length + 1 <= AGENT_CREDIT_UNSAVED + (apr_size_t)256 * 1024;
         said += length + 1) {
        assert_true(
            agent_credit_allows(&runs->credits, fixture->leases[0], length));
        agent_batch_add(&runs->batches, fixture->leases[0], AGENT_ITEM_EVENT,
                        line, length, -1);
    }
}

static void a_line_that_waits_for_room_is_not_parsed_again(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_runner_t *runner = fixture->runner;

    runs->batches.backlogs
        .sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED
        + AGENT_BATCH_MEDIUM_ROOM;
    agent_buffer_init(&runner->output, *state);
    /* Reading it would end the runner. */
    agent_buffer_append(&runner->output, "no JSON\n", 8);
    runner->is_held = true;
    agent_runner_touch(runner);
    runner->held_key = add_named(fixture)->key;
    runner->scanned = AGENT_BATCH_LONG_LINE + 1;
    agent_runner_io_resume(fixture->io);
    assert_true(runner->is_held);
    assert_int_equal(agent_buffer_length(&runner->output), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(credit_is_given_in_the_order_of_requests),
        CHECK_TEST(
            a_line_without_credit_leaves_the_next_room_to_runs_that_wait),
        CHECK_TEST(a_line_of_1_mb_does_not_wait_behind_longer_ones),
        CHECK_TEST(a_run_that_waits_for_its_own_output_takes_no_room),
        CHECK_TEST(a_runner_does_not_wait_for_credit_that_another_does_not_use),
        CHECK_TEST(a_line_of_1_mb_does_not_wait_for_longer_ones),
        CHECK_TEST(runners_take_turns),
        CHECK_TEST(a_run_may_not_request_credit_before_it_read_go),
        CHECK_TEST(a_run_that_is_no_longer_held_does_not_wait_for_credit),
        CHECK_TEST(a_run_goes_on_when_what_it_sent_is_saved),
        CHECK_TEST(a_run_with_512_kb_unsaved_needs_credit),
        CHECK_TEST(a_want_line_is_taken_however_much_is_unsaved),
        CHECK_TEST(short_lines_into_a_dedicated_batch_are_bounded_for_each_run),
        CHECK_TEST(short_lines_do_not_wait_for_the_dedicated_batches),
        CHECK_TEST(output_of_an_older_lease_does_not_count),
        CHECK_TEST(output_under_the_epoch_of_a_lost_claim_is_dropped),
        CHECK_TEST(a_run_that_requests_credit_in_time_is_never_held),
        CHECK_TEST(a_line_that_waits_for_room_is_not_parsed_again),
    };

    return CHECK_RUN(tests);
}
