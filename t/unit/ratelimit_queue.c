/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/store/queue.c */
/* OBJECTS: ../mod_ratelimit_regional/protocol/wait_slot.c */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* Requests that wait for the store. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../mod_ratelimit_regional/store/queue.h"

#define SECOND_US 1000000U
/* Never reached: a hang of the test. */
#define LONG_US (100 * SECOND_US)
#define LONG_MS (LONG_US / 1000)

static const unsigned char key[RLR_MESSAGE_KEY_BYTES] = {1};
static const unsigned char other[RLR_MESSAGE_KEY_BYTES] = {2};
static const rlr_limit_t ten = {10, 10};

typedef struct request_t {
    rlr_queue_t *queue;
    uint32_t client;
    rlr_queue_result_t result;
    pthread_t thread;
} request_t;

static rlr_wait_slots_t make_slots(uint32_t count, apr_pool_t *pool)
{
    return (rlr_wait_slots_t){
        apr_pcalloc(pool, count * sizeof(rlr_wait_slot_t)), count,
        apr_pcalloc(pool, sizeof(rlr_wait_recent_t))};
}

/* A queue with so many slots, and brief waits of up to brief_ms. */
static rlr_queue_t *make_brief_queue(uint32_t count, uint32_t timeout_us,
                                     uint32_t brief_ms, apr_pool_t *pool)
{
    rlr_wait_slots_t slots = make_slots(count, pool);

    return rlr_queue_make(&slots, timeout_us, brief_ms, pool);
}

/* One in which each request needs a slot. */
static rlr_queue_t *make_queue(uint32_t count, uint32_t timeout_us,
                               apr_pool_t *pool)
{
    return make_brief_queue(count, timeout_us, 0, pool);
}

static void *run_request(void *data)
{
    request_t *request = data;

    request->result = rlr_queue_request(request->queue, key, ten,
                                        request->client);
    return NULL;
}

/* Starts requests of one client for the same key. */
static void start(request_t *requests, int count, rlr_queue_t *queue,
                  uint32_t client)
{
    for (int i = 0; i < count; i++) {
        requests[i].queue = queue;
        requests[i].client = client;
        pthread_create(&requests[i].thread, NULL, run_request, &requests[i]);
    }
}

/* Waits for them; how many have that result. */
static int count_results(request_t *requests, int count,
                         rlr_queue_result_t result)
{
    int with_result = 0;

    for (int i = 0; i < count; i++) {
        pthread_join(requests[i].thread, NULL);
        with_result += requests[i].result == result;
    }
    return with_result;
}

static void a_request_has_the_decision_of_the_store(void **state)
{
    rlr_queue_t *queue = make_queue(4, LONG_US, *state);
    rlr_pending_request_t *pending;
    request_t requests[1];

    start(requests, 1, queue, 1);
    pending = rlr_queue_take(queue, LONG_US);
    assert_non_null(pending);
    assert_memory_equal(pending->key, key, sizeof(key));
    rlr_queue_finish(queue, pending, true, 1);
    assert_int_equal(count_results(requests, 1, RLR_QUEUE_ADMITTED), 1);
}

/* Takes pending requests for as many requests, which are all asked for once, in
 * one pending request or several; returns the number of pending requests. */
static int take_all(rlr_pending_request_t **pending_requests,
                    rlr_queue_t *queue, uint32_t requests)
{
    uint32_t waiting = 0;
    int count = 0;

    while (waiting < requests) {
        rlr_pending_request_t *list = rlr_queue_take(queue, LONG_US);

        for (; list != NULL; list = list->next) {
            waiting += list->waiting;
            pending_requests[count++] = list;
        }
    }
    assert_int_equal(waiting, requests);
    return count;
}

/* Finishes pending requests with as many admissions as each has requests, but
 * for the first, which has `fewer`; or undecided. */
static void finish_all(rlr_queue_t *queue, rlr_pending_request_t **pending,
                       int count, bool is_decided, uint32_t fewer)
{
    for (int i = 0; i < count; i++) {
        rlr_queue_finish(queue, pending[i], is_decided,
                         is_decided ? pending[i]->waiting - fewer : 0);
        fewer = 0;
    }
}

static void requests_for_one_key_share_a_pending_request(void **state)
{
    rlr_queue_t *queue = make_queue(16, LONG_US, *state);
    rlr_pending_request_t *pending_requests[8];
    request_t requests[8];
    int count;

    start(requests, 8, queue, 1);
    count = take_all(pending_requests, queue, 8);
    finish_all(queue, pending_requests, count, true, 1);
    assert_int_equal(count_results(requests, 8, RLR_QUEUE_ADMITTED), 7);
}

static void a_store_that_hangs_holds_no_more_threads_than_may_wait(void **state)
{
    rlr_queue_t *queue = make_queue(3, LONG_US, *state);
    rlr_pending_request_t *pending_requests[3];
    request_t requests[3];
    int count;

    /* Of several clients, since one leaves slots to others. */
    for (uint32_t i = 0; i < 3; i++) {
        start(&requests[i], 1, queue, i);
    }
    count = take_all(pending_requests, queue, 3);
    /* All wait: a further one does not. */
    assert_int_equal(rlr_queue_request(queue, other, ten, 9), RLR_QUEUE_BUSY);
    finish_all(queue, pending_requests, count, false, 0);
    assert_int_equal(count_results(requests, 3, RLR_QUEUE_UNDECIDED), 3);
}

static void one_client_leaves_slots_to_others(void **state)
{
    rlr_queue_t *queue = make_queue(4, LONG_US, *state);
    rlr_pending_request_t *pending_requests[3];
    request_t requests[3];
    int count;

    start(requests, 2, queue, 1);
    count = take_all(pending_requests, queue, 2);
    assert_int_equal(rlr_queue_request(queue, other, ten, 1), RLR_QUEUE_BUSY);
    start(requests + 2, 1, queue, 2);
    count += take_all(pending_requests + count, queue, 1);
    finish_all(queue, pending_requests, count, true, 0);
    assert_int_equal(count_results(requests, 3, RLR_QUEUE_ADMITTED), 3);
}

static void a_request_waits_for_the_timeout_at_most(void **state)
{
    rlr_queue_t *queue = make_queue(4, 1000, *state);
    rlr_pending_request_t *pending;

    assert_int_equal(rlr_queue_request(queue, key, ten, 1), RLR_QUEUE_LATE);
    pending = rlr_queue_take(queue, LONG_US);
    /* It waits no longer: nothing is requested for it. */
    assert_int_equal(pending->waiting, 0);
    rlr_queue_finish(queue, pending, true, 1);
    assert_null(rlr_queue_take(queue, 0));
}

static void while_a_partition_is_away_no_request_for_it_waits(void **state)
{
    rlr_queue_t *queue = make_queue(4, LONG_US, *state);

    /* The key is in partition 0. */
    rlr_queue_set_away(queue, 1U << 0 | 1U << 3);
    assert_int_equal(rlr_queue_request(queue, key, ten, 1),
                     RLR_QUEUE_UNDECIDED);
    rlr_queue_refill(queue, key, ten);
    assert_null(rlr_queue_take(queue, 0));
    rlr_queue_set_away(queue, 1U << 3);
    assert_false(rlr_queue_is_away(queue, key));
    rlr_queue_refill(queue, key, ten);
    assert_non_null(rlr_queue_take(queue, 0));
}

static void a_refill_is_asked_for_once_and_not_waited_for(void **state)
{
    rlr_queue_t *queue = make_queue(4, LONG_US, *state);
    rlr_pending_request_t *pending;

    rlr_queue_refill(queue, key, ten);
    rlr_queue_refill(queue, key, ten);
    pending = rlr_queue_take(queue, LONG_US);
    assert_int_equal(pending->waiting, 0);
    assert_null(pending->next);
    rlr_queue_finish(queue, pending, true, 0);
}

static void requests_with_other_limits_do_not_share_a_pending_request(
    void **state)
{
    static const rlr_limit_t twenty = {20, 10};
    rlr_queue_t *queue = make_queue(4, LONG_US, *state);
    const rlr_pending_request_t *list;

    rlr_queue_refill(queue, key, ten);
    rlr_queue_refill(queue, key, twenty);
    list = rlr_queue_take(queue, LONG_US);
    assert_non_null(list->next);
    assert_int_equal(list->limit.count, 10);
    assert_int_equal(list->next->limit.count, 20);
}

static void a_pending_request_that_is_finished_is_used_again(void **state)
{
    rlr_queue_t *queue = make_queue(4, LONG_US, *state);

    /* More than there are. */
    for (int i = 0; i < 2000; i++) {
        rlr_pending_request_t *pending;

        rlr_queue_refill(queue, key, ten);
        pending = rlr_queue_take(queue, 0);
        assert_non_null(pending);
        rlr_queue_finish(queue, pending, true, 0);
    }
}

/* A thread of the test, and its number. */
typedef struct sleeper_t {
    rlr_queue_t *queue;
    void (*wait)(struct sleeper_t *sleeper);
    pthread_t thread;
    _Atomic pid_t number;
    rlr_pending_request_t *taken;
} sleeper_t;

/* Waits until it sleeps in a wait of the queue. */
static void wait_until_asleep(const sleeper_t *sleeper)
{
    char state = 'R';

    while (sleeper->number == 0 || state != 'S') {
        char path[64];
        FILE *file;

        sched_yield();
        snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
                 (int)sleeper->number);
        file = sleeper->number == 0 ? NULL : fopen(path, "re");
        if (file != NULL) {
            assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
            fclose(file);
        }
    }
}

static void *run_sleeper(void *data)
{
    sleeper_t *sleeper = data;

    sleeper->number = (pid_t)syscall(SYS_gettid);
    sleeper->wait(sleeper);
    return NULL;
}

/* Starts a thread that sleeps in a wait of the queue. */
static void start_sleeper(sleeper_t *sleeper)
{
    pthread_create(&sleeper->thread, NULL, run_sleeper, sleeper);
    wait_until_asleep(sleeper);
}

static void wait_for_reset(sleeper_t *sleeper)
{
    rlr_queue_reset(sleeper->queue, key);
}

static void no_request_joins_a_pending_reset(void **state)
{
    sleeper_t sleeper = {.queue = make_queue(4, LONG_US, *state),
                         .wait = wait_for_reset};
    rlr_pending_request_t *list;

    start_sleeper(&sleeper);
    rlr_queue_refill(sleeper.queue, key, ten);
    list = rlr_queue_take(sleeper.queue, LONG_US);
    assert_true(list->is_reset);
    assert_non_null(list->next);
    assert_false(list->next->is_reset);
    rlr_queue_finish(sleeper.queue, list->next, true, 0);
    rlr_queue_finish(sleeper.queue, list, true, 0);
    pthread_join(sleeper.thread, NULL);
}

static void wait_for_request(sleeper_t *sleeper)
{
    sleeper->taken = rlr_queue_take(sleeper->queue, LONG_US);
}

static void a_worker_that_waits_learns_that_the_queue_is_stopped(void **state)
{
    sleeper_t sleeper = {.queue = make_queue(4, LONG_US, *state),
                         .wait = wait_for_request};

    start_sleeper(&sleeper);
    rlr_queue_stop(sleeper.queue);
    pthread_join(sleeper.thread, NULL);
    assert_null(sleeper.taken);
}

static void a_stopped_queue_takes_no_pending_request(void **state)
{
    rlr_queue_t *queue = make_queue(4, LONG_US, *state);

    rlr_queue_stop(queue);
    assert_true(rlr_queue_is_stopped(queue));
    assert_int_equal(rlr_queue_request(queue, key, ten, 1),
                     RLR_QUEUE_UNDECIDED);
    assert_false(rlr_queue_reset(queue, key));
}

/* ---- Brief waits ---- */

static void brief_waits_need_no_slot(void **state)
{
    rlr_queue_t *queue = make_brief_queue(0, LONG_US, LONG_MS, *state);
    rlr_pending_request_t *pending_requests[8];
    request_t requests[8];
    int count;

    start(requests, 8, queue, 1);
    count = take_all(pending_requests, queue, 8);
    finish_all(queue, pending_requests, count, true, 0);
    assert_int_equal(count_results(requests, 8, RLR_QUEUE_ADMITTED), 8);
}

static void without_a_slot_a_request_waits_briefly(void **state)
{
    rlr_queue_t *queue = make_brief_queue(0, LONG_US, 1, *state);

    assert_int_equal(rlr_queue_request(queue, key, ten, 1), RLR_QUEUE_LATE);
}

static void a_wait_that_is_not_brief_takes_a_slot(void **state)
{
    rlr_wait_slots_t slots = make_slots(1, *state);
    rlr_queue_t *queue = rlr_queue_make(&slots, LONG_US, 1, *state);
    rlr_pending_request_t *pending_requests[1];
    request_t requests[1];
    int count;

    start(requests, 1, queue, 1);
    count = take_all(pending_requests, queue, 1);
    while (atomic_load(&slots.all[0].holder) == 0) {
        sched_yield();
    }
    assert_int_equal(rlr_queue_request(queue, other, ten, 9), RLR_QUEUE_BUSY);
    finish_all(queue, pending_requests, count, true, 0);
    assert_int_equal(count_results(requests, 1, RLR_QUEUE_ADMITTED), 1);
    assert_int_equal(atomic_load(&slots.all[0].holder), 0);
}

/* Makes the store slow: a pending request is not answered for too long. */
static void make_slow(rlr_queue_t *queue)
{
    rlr_pending_request_t *pending;
    rlr_queue_result_t result = RLR_QUEUE_LATE;

    rlr_queue_refill(queue, other, ten);
    pending = rlr_queue_take(queue, LONG_US);
    while (result == RLR_QUEUE_LATE) {
        result = rlr_queue_request(queue, key, ten, 1);
    }
    assert_int_equal(result, RLR_QUEUE_BUSY);
    rlr_queue_finish(queue, pending, true, 0);
    rlr_queue_drop(queue, rlr_queue_take(queue, 0));
}

static void while_the_store_is_slow_each_request_needs_a_slot(void **state)
{
    rlr_queue_t *queue = make_brief_queue(0, LONG_US, 100, *state);
    rlr_queue_result_t result = RLR_QUEUE_LATE;

    /* On a busy machine a second may pass, after which it counts as quick. */
    while (result == RLR_QUEUE_LATE) {
        make_slow(queue);
        /* Also to join a pending request. */
        rlr_queue_refill(queue, key, ten);
        result = rlr_queue_request(queue, key, ten, 1);
        rlr_queue_drop(queue, rlr_queue_take(queue, 0));
    }
    assert_int_equal(result, RLR_QUEUE_BUSY);
}

static void after_an_answer_in_time_requests_need_no_slot_again(void **state)
{
    rlr_queue_t *queue = make_brief_queue(0, LONG_US, 100, *state);
    rlr_queue_result_t result = RLR_QUEUE_BUSY;

    make_slow(queue);
    /* On a busy machine an answer may not be in time. */
    while (result == RLR_QUEUE_BUSY) {
        rlr_queue_refill(queue, key, ten);
        rlr_queue_finish(queue, rlr_queue_take(queue, LONG_US), true, 0);
        result = rlr_queue_request(queue, key, ten, 1);
    }
    assert_int_equal(result, RLR_QUEUE_LATE);
}

static void an_answer_to_a_call_without_requests_counts_too(void **state)
{
    rlr_queue_t *queue = make_brief_queue(0, 1, 100, *state);

    rlr_queue_note_answer(queue, 100);
    assert_int_equal(rlr_queue_request(queue, key, ten, 1), RLR_QUEUE_BUSY);
    rlr_queue_note_answer(queue, 99);
    assert_int_equal(rlr_queue_request(queue, key, ten, 1), RLR_QUEUE_LATE);
}

/* Requests of a client, each with a call of its own, until one needs a slot;
 * another client comes too. */
static void make_very_frequent(rlr_queue_t *queue, uint32_t client)
{
    rlr_queue_result_t result = RLR_QUEUE_LATE;

    for (uint32_t i = 0; result == RLR_QUEUE_LATE; i++) {
        if (i % 64 == 0) {
            rlr_queue_request(queue, key, ten, client + 1);
            rlr_queue_drop(queue, rlr_queue_take(queue, 0));
        }
        result = rlr_queue_request(queue, key, ten, client);
        rlr_queue_drop(queue, rlr_queue_take(queue, 0));
    }
    assert_int_equal(result, RLR_QUEUE_BUSY);
}

static void a_request_joins_a_pending_one_without_a_slot(void **state)
{
    rlr_queue_t *queue = make_brief_queue(0, 1, LONG_MS, *state);

    make_very_frequent(queue, 1);
    rlr_queue_refill(queue, key, ten);
    assert_int_equal(rlr_queue_request(queue, key, ten, 1), RLR_QUEUE_LATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_request_has_the_decision_of_the_store),
        CHECK_TEST(requests_for_one_key_share_a_pending_request),
        CHECK_TEST(a_request_waits_for_the_timeout_at_most),
        CHECK_TEST(while_a_partition_is_away_no_request_for_it_waits),
        CHECK_TEST(a_refill_is_asked_for_once_and_not_waited_for),
        CHECK_TEST(requests_with_other_limits_do_not_share_a_pending_request),
        CHECK_TEST(a_pending_request_that_is_finished_is_used_again),
        CHECK_TEST(no_request_joins_a_pending_reset),
        CHECK_TEST(a_worker_that_waits_learns_that_the_queue_is_stopped),
        CHECK_TEST(a_stopped_queue_takes_no_pending_request),
        CHECK_TEST(brief_waits_need_no_slot),
        CHECK_TEST(without_a_slot_a_request_waits_briefly),
        CHECK_TEST(a_wait_that_is_not_brief_takes_a_slot),
        CHECK_TEST(while_the_store_is_slow_each_request_needs_a_slot),
        CHECK_TEST(after_an_answer_in_time_requests_need_no_slot_again),
        CHECK_TEST(an_answer_to_a_call_without_requests_counts_too),
        CHECK_TEST(a_request_joins_a_pending_one_without_a_slot),
        CHECK_TEST(one_client_leaves_slots_to_others),
        CHECK_TEST(a_store_that_hangs_holds_no_more_threads_than_may_wait),
    };

    return CHECK_RUN(tests);
}
