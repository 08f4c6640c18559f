/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/store/queue.c */
/* OBJECTS: ../mod_ratelimit_regional/protocol/wait_slot.c */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* How long requests wait for the store, by a clock of the test: it goes on only
 * while a request waits, up to the next event or the end of the wait. */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "../../mod_ratelimit_regional/store/queue.h"

#define SECOND_US 1000000U
#define START_US  (1000ULL * SECOND_US)
/* Enough for any test. */
#define SLOTS 8

static const unsigned char key[RLR_MESSAGE_KEY_BYTES] = {1};
static const unsigned char other[RLR_MESSAGE_KEY_BYTES] = {2};
static const rlr_limit_t ten = {10, 10};

typedef struct case_t {
    rlr_queue_t *queue;
    uint64_t now_us;
    /* When the worker sends what is pending, and has the reply; 0: never. */
    uint64_t sent_us;
    uint64_t replied_us;
    rlr_pending_request_t *sent;
    rlr_wait_recent_t *recent;
} case_t;

/* Of the test that runs. */
static case_t test;

/* ---- In place of those of the system ---- */

int read_clock(clockid_t id, struct timespec *now) __asm__("clock_gettime");
int wait_until(pthread_cond_t *condition, pthread_mutex_t *lock,
               const struct timespec *until) __asm__("pthread_cond_timedwait");

int read_clock(clockid_t id, struct timespec *now)
{
    now->tv_sec = (time_t)(test.now_us / SECOND_US);
    now->tv_nsec = (long)(test.now_us % SECOND_US) * 1000;
    return 0;
}

static void send_pending(void)
{
    test.sent_us = 0;
    test.sent = rlr_queue_take(test.queue, 0);
}

static void answer_sent(void)
{
    test.replied_us = 0;
    rlr_queue_finish(test.queue, test.sent, true, test.sent->waiting);
}

int wait_until(pthread_cond_t *condition, pthread_mutex_t *lock,
               const struct timespec *until)
{
    uint64_t until_us = (uint64_t)until->tv_sec * SECOND_US
        + (uint64_t)until->tv_nsec / 1000;
    uint64_t event_us = test.sent_us != 0 ? test.sent_us : test.replied_us;

    if (event_us == 0 || event_us > until_us) {
        test.now_us = until_us;
        return ETIMEDOUT;
    }
    test.now_us = event_us;
    pthread_mutex_unlock(lock);
    if (test.sent_us != 0) {
        send_pending();
    }
    else {
        answer_sent();
    }
    pthread_mutex_lock(lock);
    return 0;
}

/* ---- Tests ---- */

static void begin_with_slots(uint32_t count, uint32_t timeout_ms,
                             uint32_t brief_ms, apr_pool_t *pool)
{
    rlr_wait_slots_t slots = {apr_pcalloc(pool, SLOTS * sizeof(*slots.all)),
                              count,
                              apr_pcalloc(pool, sizeof(rlr_wait_recent_t))};

    memset(&test, 0, sizeof(test));
    test.recent = slots.recent;
    test.now_us = START_US;
    test.queue = rlr_queue_make(&slots, timeout_ms * 1000, brief_ms, pool);
}

/* Without slots, with brief waits of 20 ms. */
static void begin(uint32_t timeout_ms, apr_pool_t *pool)
{
    begin_with_slots(0, timeout_ms, 20, pool);
}

/* A request that is sent and answered so many microseconds later; 0: never. */
static rlr_queue_result_t request(uint64_t sent_us, uint64_t replied_us)
{
    test.sent_us = sent_us > 0 ? test.now_us + sent_us : 0;
    test.replied_us = replied_us > 0 ? test.now_us + replied_us : 0;
    return rlr_queue_request(test.queue, key, ten, 1);
}

static void a_brief_wait_begins_when_the_call_is_sent(void **state)
{
    begin(200, *state);
    assert_int_equal(request(18000, 37000), RLR_QUEUE_ADMITTED);
    assert_int_equal(test.now_us, START_US + 37000);
}

static void a_brief_wait_for_a_reply_ends(void **state)
{
    begin(200, *state);
    assert_int_equal(request(18000, 39000), RLR_QUEUE_LATE);
    assert_int_equal(test.now_us, START_US + 38000);
}

static void a_brief_wait_for_the_sending_ends(void **state)
{
    begin(200, *state);
    assert_int_equal(request(21000, 22000), RLR_QUEUE_LATE);
    assert_int_equal(test.now_us, START_US + 20000);
}

/* The call before is not the store's time for this one. */
static void a_store_is_slow_by_the_time_of_one_call(void **state)
{
    begin(200, *state);
    assert_int_equal(request(18000, 37000), RLR_QUEUE_ADMITTED);
    assert_int_equal(request(1, 1000), RLR_QUEUE_ADMITTED);
}

static void a_call_that_is_under_way_is_slow_by_its_own_time(void **state)
{
    begin(200, *state);
    rlr_queue_refill(test.queue, key, ten);
    test.now_us += 18000;
    send_pending();
    test.now_us += 19000;
    assert_int_equal(rlr_queue_request(test.queue, other, ten, 1),
                     RLR_QUEUE_LATE);
    assert_int_equal(rlr_queue_request(test.queue, other, ten, 1),
                     RLR_QUEUE_BUSY);
}

static void a_store_that_nothing_is_sent_to_is_slow(void **state)
{
    begin(200, *state);
    rlr_queue_refill(test.queue, key, ten);
    test.now_us += 20000;
    assert_int_equal(rlr_queue_request(test.queue, other, ten, 1),
                     RLR_QUEUE_BUSY);
}

static void a_request_waits_for_the_timeout_at_most(void **state)
{
    begin(5, *state);
    assert_int_equal(request(4000, 4999), RLR_QUEUE_ADMITTED);
    assert_int_equal(request(4000, 5001), RLR_QUEUE_LATE);
    assert_int_equal(test.now_us, START_US + 4999 + 5000);
}

static void a_request_that_is_not_sent_waits_for_the_timeout(void **state)
{
    begin(5, *state);
    assert_int_equal(request(0, 0), RLR_QUEUE_LATE);
    assert_int_equal(test.now_us, START_US + 5000);
}

static void a_brief_wait_ends_at_the_timeout(void **state)
{
    begin_with_slots(SLOTS, 30, 20, *state);
    assert_int_equal(request(15000, 30001), RLR_QUEUE_LATE);
    assert_int_equal(test.now_us, START_US + 30000);
    /* Without a slot. */
    assert_int_equal(test.recent->next, 1);
}

static void the_rest_of_a_wait_ends_at_the_timeout(void **state)
{
    begin_with_slots(SLOTS, 50, 20, *state);
    assert_int_equal(request(15000, 49999), RLR_QUEUE_ADMITTED);
    begin_with_slots(SLOTS, 50, 20, *state);
    assert_int_equal(request(15000, 50001), RLR_QUEUE_LATE);
    assert_int_equal(test.now_us, START_US + 50000);
}

static void a_wait_with_a_slot_ends_at_the_timeout(void **state)
{
    begin_with_slots(SLOTS, 50, 0, *state);
    assert_int_equal(request(40000, 49999), RLR_QUEUE_ADMITTED);
    begin_with_slots(SLOTS, 50, 0, *state);
    assert_int_equal(request(40000, 50001), RLR_QUEUE_LATE);
    assert_int_equal(test.now_us, START_US + 50000);
}

static void a_reset_waits_for_a_second(void **state)
{
    begin(5, *state);
    test.sent_us = test.now_us + 400000;
    test.replied_us = test.now_us + 999999;
    assert_true(rlr_queue_reset(test.queue, key));
    test.sent_us = test.now_us + 400000;
    test.replied_us = test.now_us + 1000001;
    assert_false(rlr_queue_reset(test.queue, key));
    assert_int_equal(test.now_us, START_US + 999999 + 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_brief_wait_begins_when_the_call_is_sent),
        CHECK_TEST(a_brief_wait_for_a_reply_ends),
        CHECK_TEST(a_brief_wait_for_the_sending_ends),
        CHECK_TEST(a_store_is_slow_by_the_time_of_one_call),
        CHECK_TEST(a_call_that_is_under_way_is_slow_by_its_own_time),
        CHECK_TEST(a_store_that_nothing_is_sent_to_is_slow),
        CHECK_TEST(a_request_waits_for_the_timeout_at_most),
        CHECK_TEST(a_request_that_is_not_sent_waits_for_the_timeout),
        CHECK_TEST(a_brief_wait_ends_at_the_timeout),
        CHECK_TEST(the_rest_of_a_wait_ends_at_the_timeout),
        CHECK_TEST(a_wait_with_a_slot_ends_at_the_timeout),
        CHECK_TEST(a_reset_waits_for_a_second),
    };

    return CHECK_RUN(tests);
}
