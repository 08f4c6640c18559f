/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/connection.c db/array.c */
/* When a run is told to go on; see supervisor/credit.h. */
#include "../unit/check.h"

#include <string.h>

#include "../../mod_agent/supervisor/state.h"

#define BIG ((apr_size_t)8 * 1024 * 1024)

typedef struct asked_t {
    agent_supervisor_t *sv;
    agent_runner_t *runner;
    agent_lease_t *leases[9];
} asked_t;

/* A runner with nine runs. */
static asked_t *make_asked(apr_pool_t *pool)
{
    asked_t *asked = apr_pcalloc(pool, sizeof(*asked));
    agent_supervisor_t *sv = apr_pcalloc(pool, sizeof(*sv));

    sv->pool = pool;
    asked->sv = sv;
    asked->runner = apr_pcalloc(pool, sizeof(*asked->runner));
    APR_RING_INIT(&asked->runner->leases, agent_lease_t, link);
    agent_buffer_init(&asked->runner->input, pool);
    agent_lease_init(sv);
    agent_batch_init(sv);
    agent_credit_init(sv);
    for (int i = 0; i < 9; i++) {
        agent_lease_key_t key = {.epoch = 1};

        memset(key.run_id, '0' + i, sizeof(key.run_id));
        asked->leases[i] = agent_lease_add(sv, &key, asked->runner);
    }
    return asked;
}

/* How many runs were told to go on since the last time. */
static int count_told(const asked_t *asked)
{
    agent_buffer_t *input = &asked->runner->input;
    const char *text = agent_buffer_text(input);
    int told = 0;

    for (apr_size_t i = 0; i < agent_buffer_length(input); i++) {
        told += text[i] == '\n';
    }
    agent_buffer_consume(input, agent_buffer_length(input));
    return told;
}

static void runs_are_told_to_go_on_in_turn(void **state)
{
    asked_t *asked = make_asked(*state);
    agent_supervisor_t *sv = asked->sv;

    for (int i = 0; i < 9; i++) {
        assert_true(agent_credit_ask(sv, asked->leases[i], BIG));
    }
    assert_false(agent_credit_ask(sv, asked->leases[8], 1));
    agent_credit_step(sv);
    assert_int_equal(count_told(asked), AGENT_BATCH_MAX_LANES / BIG);
    assert_int_equal(asked->leases[8]->granted, 0);
    assert_int_equal(agent_credit_used(sv), AGENT_BATCH_MAX_LANES);
    assert_false(agent_credit_has_room(sv));
    /* What was said is counted in the lanes, and no longer as credit. */
    agent_credit_spend(sv, asked->leases[0], 2 * BIG);
    assert_int_equal(agent_credit_used(sv), AGENT_BATCH_MAX_LANES - BIG);
    agent_credit_step(sv);
    assert_int_equal(count_told(asked), 1);
    assert_int_equal(asked->leases[8]->granted, BIG);
}

static void a_run_that_asks_for_more_than_there_is_may_speak_alone(void **state)
{
    asked_t *asked = make_asked(*state);
    agent_supervisor_t *sv = asked->sv;

    agent_credit_ask(sv, asked->leases[0], 2 * AGENT_BATCH_MAX_LANES);
    agent_credit_step(sv);
    assert_int_equal(count_told(asked), 1);
    agent_credit_ask(sv, asked->leases[1], 1);
    agent_credit_step(sv);
    assert_int_equal(count_told(asked), 0);
    agent_credit_forget(sv, asked->leases[0]);
    agent_credit_step(sv);
    assert_int_equal(count_told(asked), 1);
}

static void a_run_that_is_not_stored_need_not_wait(void **state)
{
    asked_t *asked = make_asked(*state);
    agent_supervisor_t *sv = asked->sv;

    sv->batches.lane_bytes = AGENT_BATCH_MAX_LANES;
    agent_credit_ask(sv, asked->leases[0], BIG);
    agent_credit_step(sv);
    assert_int_equal(count_told(asked), 0);
    agent_credit_release(sv, asked->leases[0]);
    assert_int_equal(count_told(asked), 1);
    assert_int_equal(sv->credits.wanted, 0);
    assert_int_equal(agent_credit_used(sv), AGENT_BATCH_MAX_LANES);
    asked->leases[0]->state = AGENT_LEASE_GONE;
    assert_true(agent_credit_ask(sv, asked->leases[0], BIG));
    assert_int_equal(count_told(asked), 1);
}

/* Short lines, so many bytes of them. */
static void say(const asked_t *asked, agent_lease_t *lease, apr_size_t bytes)
{
    char line[1024];

    memset(line, ' ', sizeof(line));
    line[0] = '{';
    line[sizeof(line) - 1] = '}';
    for (apr_size_t said = 0; said < bytes; said += sizeof(line)) {
        agent_batch_add(asked->sv, lease, AGENT_ITEM_EVENT, line, sizeof(line));
    }
}

static void a_run_goes_on_when_what_it_said_is_saved(void **state)
{
    asked_t *asked = make_asked(*state);
    agent_supervisor_t *sv = asked->sv;
    agent_lease_t *loud = asked->leases[0];

    say(asked, loud, AGENT_CREDIT_UNSAVED * 4);
    assert_true(agent_batch_measure_run(sv, loud->key.run_id)
                >= AGENT_CREDIT_UNSAVED * 4);
    agent_credit_ask(sv, loud, 1000);
    agent_credit_ask(sv, asked->leases[1], 1000);
    agent_credit_step(sv);
    assert_int_equal(count_told(asked), 1);
    assert_int_equal(asked->leases[1]->granted, 1000);
    agent_batch_clear(sv);
    agent_credit_step(sv);
    assert_int_equal(count_told(asked), 1);
    assert_int_equal(loud->granted, 1000);
}

static void a_run_that_does_not_ask_says_no_more_than_it_may(void **state)
{
    asked_t *asked = make_asked(*state);
    agent_supervisor_t *sv = asked->sv;
    agent_lease_t *loud = asked->leases[0];

    say(asked, loud, AGENT_BATCH_MAX_RUN / 2);
    assert_true(agent_batch_takes(sv, loud, 1000));
    say(asked, loud, AGENT_BATCH_MAX_RUN / 2);
    assert_false(agent_batch_takes(sv, loud, 1000));
    assert_true(agent_batch_takes(sv, asked->leases[1], 1000));
    loud->granted = 2000;
    assert_true(agent_batch_takes(sv, loud, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(runs_are_told_to_go_on_in_turn),
        CHECK_TEST(a_run_that_asks_for_more_than_there_is_may_speak_alone),
        CHECK_TEST(a_run_that_is_not_stored_need_not_wait),
        CHECK_TEST(a_run_goes_on_when_what_it_said_is_saved),
        CHECK_TEST(a_run_that_does_not_ask_says_no_more_than_it_may),
    };

    return CHECK_RUN(tests);
}
