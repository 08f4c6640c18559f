/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* Not under valgrind: its threads spin. */
/* Eight workers on one table: concurrent first requests, reused slots,
 * different limits, killed workers. */
#include "check.h"

#include "ratelimit_workers.h"
#include "ratelimit_share.h"

#define KEYS_MAX 4096

/* An admission: its key and time. */
typedef struct admission_t {
    uint64_t key;
    uint64_t at_ms;
} admission_t;

typedef struct shared_t {
    workers_clock_t clock;
    rlr_table_t views[2]; /* of an older and a newer configuration */
    rlr_limit_t limits[2];
    uint32_t rule;
    uint32_t keys;
    uint64_t holders; /* who send the keys; 0: no holder */
    uint64_t step_us;
    uint32_t each; /* requests of a worker */
    _Atomic uint32_t done[WORKERS];
    _Atomic uint32_t logged[WORKERS];
    _Atomic uint32_t admitted[KEYS_MAX];
    _Atomic uint64_t overflow;
    admission_t log[];
} shared_t;

static rlr_clock_t get_clock(shared_t *shared)
{
    rlr_clock_t clock = {workers_read, &shared->clock};

    return clock;
}

static shared_t *make_shared(uint32_t slots, uint32_t keys, rlr_limit_t limit,
                             uint32_t each)
{
    static const unsigned char secret[RLR_TABLE_SECRET_SIZE] = {9, 8, 7};
    size_t size = rlr_segment_size(slots, 1);
    void *memory = workers_share(size);
    shared_t *shared = workers_share(
        sizeof(shared_t) + sizeof(admission_t) * WORKERS * (size_t)each);

    shared->clock.us = 1000000000000ULL;
    shared->keys = keys;
    shared->each = each;
    assert_int_equal(rlr_segment_create(memory, size, slots, 1, secret),
                     RLR_TABLE_OK);
    for (int i = 0; i < 2; i++) {
        shared->limits[i] = limit;
        assert_int_equal(rlr_segment_attach(&shared->views[i], memory, size,
                                            segment_rows, 1, &shared->rule),
                         RLR_TABLE_OK);
    }
    return shared;
}

static void drop_shared(shared_t *shared)
{
    rlr_table_t *table = &shared->views[0];
    uint32_t slots = table->sets * 8;
    rlr_clock_t clock = get_clock(shared);
    const char *problem = rlr_walk_validate(table, &clock);

    if (problem != NULL) {
        fail_msg("the table: %s", problem);
    }
    munmap(table->segment, rlr_segment_size(slots, 1));
    munmap(shared,
           sizeof(shared_t)
               + sizeof(admission_t) * WORKERS * (size_t)shared->each);
}

static rlr_table_decision_t admit(shared_t *shared, int view, uint64_t key)
{
    rlr_clock_t clock = get_clock(shared);
    rlr_table_request_t request = {.row = shared->rule,
                                   .identity = &key,
                                   .identity_length = sizeof(key),
                                   .limit = shared->limits[view]};
    rlr_table_decision_t decision;
    uint64_t holder = shared->holders > 0 ? key % shared->holders : 0;

    if (shared->holders > 0) {
        request.holder = &holder;
        request.holder_length = sizeof(holder);
    }
    rlr_table_admit(&shared->views[view], &request, &clock, &decision);
    return decision;
}

/* All keys in the same order, so that first requests coincide. */
static void touch_all(void *baton, int worker)
{
    shared_t *shared = baton;

    for (uint64_t key = 0; key < shared->keys; key++) {
        for (int i = 0; i < 3; i++) {
            shared->admitted[key] += admit(shared, worker % 2, key)
                                         .window.admitted;
        }
    }
}

static void touch_together(bool threads)
{
    static const rlr_limit_t five = {5, 10};
    shared_t *shared = make_shared(8192, KEYS_MAX, five, 1);
    rlr_clock_t clock = get_clock(shared);
    uint32_t keys;

    if (threads) {
        workers_run_threads(touch_all, shared);
    }
    else {
        assert_int_equal(workers_run_processes(touch_all, shared, 0, 1), 0);
    }
    for (int key = 0; key < KEYS_MAX; key++) {
        assert_int_equal(shared->admitted[key], 5);
    }
    assert_int_equal(rlr_walk_live_keys(&shared->views[0], &keys, 1, &clock),
                     KEYS_MAX);
    drop_shared(shared);
}

static void concurrent_first_requests_of_processes_claim_one_slot(void **state)
{
    touch_together(false);
}

static void concurrent_first_requests_of_threads_claim_one_slot(void **state)
{
    touch_together(true);
}

/* Random keys in advancing time, every admission logged. Each request has
 * either configuration, so that both decide in every interval: if workers wait
 * for a processor, a single one runs for many intervals. */
static void admit_at_random(void *baton, int worker)
{
    shared_t *shared = baton;
    admission_t *log = &shared->log[(size_t)worker * shared->each];
    uint64_t seed = (uint64_t)worker * 31 + shared->done[worker] + 1;

    while (shared->done[worker] < shared->each) {
        uint64_t key = sim_random(&seed) % shared->keys;
        int view = (int)(sim_random(&seed) >> 63);
        rlr_table_decision_t decision;

        atomic_fetch_add(&shared->clock.us,
                         sim_random(&seed) % (shared->step_us + 1));
        decision = admit(shared, view, key);
        shared->done[worker]++;
        if (decision.window.admitted) {
            admission_t admission = {key, decision.window.at_ms};

            log[shared->logged[worker]] = admission;
            shared->logged[worker]++;
        }
        else if (decision.window.wait_ms == 0) {
            _exit(4);
        }
        if (decision.overflow) {
            shared->overflow++;
        }
    }
}

static int compare_admissions(const void *a, const void *b)
{
    const admission_t *x = a;
    const admission_t *y = b;

    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

/* No key exceeds `limit` in any interval. */
static void verify(const shared_t *shared, rlr_limit_t limit)
{
    admission_t *sorted = malloc(sizeof(*sorted) * WORKERS
                                 * (size_t)shared->each);
    size_t count = 0;
    size_t over = 0;

    for (int i = 0; i < WORKERS; i++) {
        memcpy(sorted + count, &shared->log[(size_t)i * shared->each],
               shared->logged[i] * sizeof(*sorted));
        count += shared->logged[i];
    }
    qsort(sorted, count, sizeof(*sorted), compare_admissions);
    for (size_t i = limit.count; i < count; i++) {
        const admission_t *before = &sorted[i - limit.count];

        over += before->key == sorted[i].key
            && sorted[i].at_ms - before->at_ms < limit.interval_sec * 1000ULL;
    }
    free(sorted);
    assert_true(count > 100);
    assert_int_equal(over, 0);
}

static uint32_t get_share(void)
{
    return (uint32_t)(100000 * sim_effort()) + 2000;
}

static const rlr_limit_t three = {3, 10};

/* More keys than slots; each makes `times` requests in an interval on average,
 * and is unused for longer at times. */
static shared_t *make_busy_with(uint32_t keys, uint32_t times)
{
    shared_t *shared = make_shared(64, keys, three, get_share());

    shared->step_us = 2 * 10000000 / (keys * times);
    return shared;
}

static shared_t *make_busy(void)
{
    return make_busy_with(256, 5);
}

static void reused_slots_mix_no_counts_between_processes(void **state)
{
    shared_t *shared = make_busy();

    assert_int_equal(workers_run_processes(admit_at_random, shared, 0, 1), 0);
    assert_true(shared->overflow > 1000);
    verify(shared, three);
    drop_shared(shared);
}

static void reused_slots_mix_no_counts_between_threads(void **state)
{
    shared_t *shared = make_busy();

    workers_run_threads(admit_at_random, shared);
    assert_true(shared->overflow > 1000);
    verify(shared, three);
    drop_shared(shared);
}

/* Five addresses, each with a share of four slots. */
static shared_t *make_crowded(void)
{
    shared_t *shared = make_busy();

    shared->holders = 5;
    return shared;
}

static void addresses_do_not_exceed_their_shares_between_threads(void **state)
{
    shared_t *shared = make_crowded();

    workers_run_threads(admit_at_random, shared);
    assert_true(shared->overflow > 1000);
    verify(shared, three);
    assert_int_equal(segment_excess(&shared->views[0]), 0);
    drop_shared(shared);
}

static void shares_are_repaired_after_processes_were_killed(void **state)
{
    int kills = (int)(200 * sim_effort()) + 20;
    shared_t *shared = make_crowded();

    assert_true(workers_run_processes(admit_at_random, shared, kills, 1)
                > kills / 20);
    verify(shared, three);
    /* The last death left locks to recover. */
    for (uint64_t key = 10000; key < 10100; key++) {
        admit(shared, 1, key);
    }
    assert_int_equal(segment_excess(&shared->views[0]), 0);
    drop_shared(shared);
}

/* Each request has a new key of one of three addresses, which hold their share
 * most of the time: nearly each one sweeps. */
static void bring_new_keys(void *baton, int worker)
{
    shared_t *shared = baton;
    uint64_t seed = (uint64_t)worker * 31 + shared->done[worker] + 1;

    for (uint32_t i = 0; i < shared->each / 8; i++) {
        atomic_fetch_add(&shared->clock.us, sim_random(&seed) % 100000);
        if (admit(shared, 0, sim_random(&seed)).overflow) {
            shared->overflow++;
        }
        shared->done[worker]++;
    }
}

static void *bring_in_thread(void *baton)
{
    const workers_task_t *task = baton;

    bring_new_keys(task->shared, task->worker);
    return NULL;
}

/* A process of two threads; both die when it is killed. */
static void bring_by_two(void *baton, int worker)
{
    workers_task_t task = {NULL, baton, worker};
    pthread_t thread;

    if (pthread_create(&thread, NULL, bring_in_thread, &task) != 0) {
        _exit(5);
    }
    bring_new_keys(baton, worker);
    pthread_join(thread, NULL);
}

static shared_t *make_sweeping(void)
{
    shared_t *shared = make_shared(256, 1, three, get_share());

    shared->holders = 3;
    return shared;
}

/* More slots were reclaimed than there are, and each is counted once. */
static void verify_sweeps(shared_t *shared)
{
    uint64_t requests = 0;

    for (int i = 0; i < WORKERS; i++) {
        requests += shared->done[i];
    }
    assert_true(shared->overflow > 100);
    assert_true(requests - shared->overflow > 1000);
    for (uint64_t key = 10000; key < 10100; key++) {
        admit(shared, 1, key);
    }
    assert_int_equal(segment_excess(&shared->views[0]), 0);
    drop_shared(shared);
}

static void sweeps_run_concurrently_in_threads(void **state)
{
    shared_t *shared = make_sweeping();

    workers_run_threads(bring_new_keys, shared);
    assert_int_equal(segment_excess(&shared->views[0]), 0);
    verify_sweeps(shared);
}

static void sweeps_run_concurrently_in_processes_with_threads(void **state)
{
    shared_t *shared = make_sweeping();

    assert_int_equal(workers_run_processes(bring_by_two, shared, 0, 1), 0);
    assert_int_equal(segment_excess(&shared->views[0]), 0);
    verify_sweeps(shared);
}

static void sweeps_and_repairs_run_concurrently_while_processes_are_killed(
    void **state)
{
    int kills = (int)(200 * sim_effort()) + 20;
    shared_t *shared = make_sweeping();

    assert_true(workers_run_processes(bring_by_two, shared, kills, 2)
                > kills / 20);
    verify_sweeps(shared);
}

static void windows_that_expire_at_once_exceed_no_limit(void **state)
{
    shared_t *shared = make_shared(64, 256, three, get_share());

    shared->step_us = 3000000;
    workers_run_threads(admit_at_random, shared);
    verify(shared, three);
    drop_shared(shared);
}

static void two_concurrent_configurations_do_not_exceed_the_larger_limit(
    void **state)
{
    static const rlr_limit_t eight = {8, 10};
    /* So few keys that one may have most of the charges of an overflow window,
     * and then get a slot by either configuration. */
    shared_t *shared = make_busy_with(80, 8);

    shared->limits[1] = eight;
    workers_run_threads(admit_at_random, shared);
    assert_true(shared->overflow > 1000);
    verify(shared, eight);
    drop_shared(shared);
}

static void killed_processes_lose_no_admission_and_no_lock(void **state)
{
    int kills = (int)(200 * sim_effort()) + 20;

    for (uint64_t i = 0; i < 3; i++) {
        static const rlr_limit_t four = {4, 10};
        shared_t *shared = make_busy();

        shared->limits[0] = four;
        assert_true(workers_run_processes(admit_at_random, shared, kills, i)
                    > kills / 20);
        verify(shared, four);
        /* Every set can be locked, and every key gets its limit again. */
        shared->clock.us += 30000000;
        for (uint64_t key = 0; key < 32; key++) {
            rlr_table_decision_t decision = admit(shared, 1, key);

            assert_true(decision.window.admitted);
            assert_false(decision.overflow);
            assert_int_equal(decision.window.remaining, 2);
        }
        drop_shared(shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(concurrent_first_requests_of_processes_claim_one_slot),
        CHECK_TEST(concurrent_first_requests_of_threads_claim_one_slot),
        CHECK_TEST(reused_slots_mix_no_counts_between_processes),
        CHECK_TEST(reused_slots_mix_no_counts_between_threads),
        CHECK_TEST(addresses_do_not_exceed_their_shares_between_threads),
        CHECK_TEST(shares_are_repaired_after_processes_were_killed),
        CHECK_TEST(sweeps_run_concurrently_in_threads),
        CHECK_TEST(sweeps_run_concurrently_in_processes_with_threads),
        CHECK_TEST(
            sweeps_and_repairs_run_concurrently_while_processes_are_killed),
        CHECK_TEST(windows_that_expire_at_once_exceed_no_limit),
        CHECK_TEST(
            two_concurrent_configurations_do_not_exceed_the_larger_limit),
        CHECK_TEST(killed_processes_lose_no_admission_and_no_lock)};

    return CHECK_RUN(tests);
}
