/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/load_admission.c */
/* Which runs may begin to read their states. */
#include "check.h"

#include "runners/builtin/run/load.h"
#include "runners/builtin/run/load_admission.h"

#include "runners/builtin/run/runs.h"
#include "runners/builtin/run/weight.h"

#define MEMORY (4 * RUNNER_WEIGHT_SMALL)
#define LARGE  (RUNNER_WEIGHT_SMALL + 1)

static size_t all_weigh;

/* In place of those of load.c and runs.c. */
void runner_load_request(runner_run_t *run)
{
    run->request_id++;
}

size_t runner_runs_weigh_all(const runner_run_ring_t *runs)
{
    return all_weigh;
}

/* Makes runs that have not begun to read, with these expected weights. */
static void make_runs(runner_run_ring_t *ring, runner_run_t *runs, int count,
                      size_t weight)
{
    APR_RING_INIT(ring, runner_run_t, link);
    for (int i = 0; i < count; i++) {
        runs[i] = (runner_run_t){.phase = RUNNER_PHASE_LOAD,
                                 .expected_weight = weight};
        APR_RING_INSERT_TAIL(ring, &runs[i], runner_run_t, link);
    }
    all_weigh = 0;
}

static void small_states_are_read_at_once(void **state)
{
    runner_run_ring_t ring;
    runner_run_t runs[3];

    make_runs(&ring, runs, 3, RUNNER_WEIGHT_SMALL);
    runner_load_admission_send(&ring, MEMORY);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(runs[i].request_id, 1);
    }
}

static void one_large_state_is_read_at_a_time(void **state)
{
    runner_run_ring_t ring;
    runner_run_t runs[3];

    make_runs(&ring, runs, 3, LARGE);
    runner_load_admission_send(&ring, MEMORY);
    assert_int_equal(runs[0].request_id, 1);
    assert_int_equal(runs[1].request_id, 0);
    /* The first one is still being read. */
    runner_load_admission_send(&ring, MEMORY);
    assert_int_equal(runs[0].request_id, 1);
    assert_int_equal(runs[1].request_id, 0);
    runs[0].phase = RUNNER_PHASE_NEXT;
    runner_load_admission_send(&ring, MEMORY);
    assert_int_equal(runs[1].request_id, 1);
    assert_int_equal(runs[2].request_id, 0);
}

static void a_small_state_is_read_beside_a_large_one(void **state)
{
    runner_run_ring_t ring;
    runner_run_t runs[2];

    make_runs(&ring, runs, 2, LARGE);
    runner_load_admission_send(&ring, MEMORY);
    runs[1].expected_weight = RUNNER_WEIGHT_SMALL;
    runner_load_admission_send(&ring, MEMORY);
    assert_int_equal(runs[1].request_id, 1);
}

static void without_memory_a_large_state_waits_for_runs_that_will_end(
    void **state)
{
    runner_run_ring_t ring;
    runner_run_t runs[2];

    make_runs(&ring, runs, 2, LARGE);
    runs[0].phase = RUNNER_PHASE_NEXT;
    all_weigh = MEMORY + 1;
    runner_load_admission_send(&ring, MEMORY);
    assert_int_equal(runs[1].request_id, 0);
    all_weigh = MEMORY;
    runner_load_admission_send(&ring, MEMORY);
    assert_int_equal(runs[1].request_id, 1);
    /* If no run will end, one continues all the same. */
    make_runs(&ring, runs, 2, LARGE);
    all_weigh = MEMORY + 1;
    runner_load_admission_send(&ring, MEMORY);
    assert_int_equal(runs[0].request_id, 1);
    assert_int_equal(runs[1].request_id, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(small_states_are_read_at_once),
        CHECK_TEST(one_large_state_is_read_at_a_time),
        CHECK_TEST(a_small_state_is_read_beside_a_large_one),
        CHECK_TEST(without_memory_a_large_state_waits_for_runs_that_will_end)};

    return CHECK_RUN(tests);
}
