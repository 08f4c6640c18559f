/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/ */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* OBJECTS: ../mod_ratelimit_regional/rules/sha256.c */
/* OBJECTS: ../mod_ratelimit_regional/store/queue.c */
/* OBJECTS: ../mod_ratelimit_regional/store/store.c */
/* OBJECTS: ../mod_ratelimit_regional/decision/decide_store.c */
/* A process that is stopped while it admits by the share of its host, by a
 * clock of the test. */
#include "check.h"

#include <string.h>
#include <time.h>

#include "../../mod_ratelimit_regional/decision/decide_store.h"
#include "../../mod_ratelimit_regional/protocol/period.h"
#include "ratelimit_segment.h"
#include "ratelimit_shared.h"

#define SHARE_MS   200000U
#define CUT_OFF_MS 60000U

static const unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0};

static uint64_t now_ms;
/* How much later it is each time that it is read. */
static uint64_t step_ms;

/* In place of that of the system. */
int read_clock(clockid_t clock, struct timespec *now) __asm__("clock_gettime");

int read_clock(clockid_t clock, struct timespec *now)
{
    now_ms += step_ms;
    now->tv_sec = (time_t)(now_ms / 1000);
    now->tv_nsec = (long)(now_ms % 1000) * 1000000;
    return 0;
}

/* The only host, cut off for a minute. */
static void begin_store(case_t *memory, rlr_store_t *store,
                        rlr_store_config_t *config)
{
    static const rlr_store_host_t host = {"one", "", 10};
    rlr_partition_state_t *state;

    now_ms = 1000000;
    memset(config, 0, sizeof(*config));
    config->hosts = 1;
    config->share_ms = SHARE_MS;
    config->failure = RLR_FAILURE_LOCAL;
    begin(memory, 16);
    rlr_store_init(store, config, &memory->shared, &host);
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        state = rlr_shared_lock(&store->shared, i, now_ms);
        state->member.number = 0;
        state->member.members = 1;
        state->member.share_ms = SHARE_MS;
        state->member.was_member = true;
        state->member.is_entitled = true;
        state->member.answered_ms = now_ms - CUT_OFF_MS;
        state->member.confirmed_ms = now_ms - CUT_OFF_MS;
        rlr_shared_unlock(&store->shared, i);
    }
}

/* Whether an admission holds if the process is stopped for so long. */
static bool keep_after(rlr_store_t *store, uint64_t stopped_ms)
{
    uint32_t wait_ms;
    bool is_kept;

    assert_int_equal(rlr_store_begin_share(store, key, ten, &wait_ms).count,
                     10);
    now_ms += stopped_ms;
    is_kept = rlr_store_keep_share(store, key, ten);
    rlr_store_end_share(store, key);
    return is_kept;
}

static void an_admission_counts_from_when_the_process_goes_on(void **state)
{
    rlr_store_config_t config;
    rlr_partition_state_t *partition;
    rlr_store_t store;
    case_t memory;

    begin_store(&memory, &store, &config);
    assert_true(keep_after(&store, 100000));
    partition = rlr_shared_lock(&store.shared, 0, now_ms);
    assert_true(partition->member.share_until_ms >= now_ms + 10000);
    rlr_shared_unlock(&store.shared, 0);
    end(&memory);
}

static void a_process_that_is_stopped_admits_nothing_after_the_share(
    void **state)
{
    rlr_store_config_t config;
    rlr_store_t store;
    case_t memory;

    begin_store(&memory, &store, &config);
    assert_false(keep_after(&store, SHARE_MS - CUT_OFF_MS));
    end(&memory);
}

static void a_process_that_is_stopped_admits_nothing_by_a_former_table(
    void **state)
{
    rlr_store_config_t config;
    rlr_store_t store;
    uint32_t wait_ms;
    case_t memory;

    begin_store(&memory, &store, &config);
    assert_int_equal(rlr_store_begin_share(&store, key, ten, &wait_ms).count,
                     10);
    rlr_shared_use_store(&memory.shared, 1);
    assert_false(rlr_store_keep_share(&store, key, ten));
    rlr_store_end_share(&store, key);
    end(&memory);
}

/* A request during which the clock goes on; 0: refused, else the time by which
 * the table has admitted it. */
static uint64_t admit_slowly(uint64_t slow_ms)
{
    rlr_stats_region_t stats = {.region = "us"};
    uint64_t identity = 1;
    rlr_table_decision_t decision;
    rlr_table_request_t request;
    rlr_store_config_t config;
    segment_t segment;
    rlr_vhost_t vhost;
    rlr_store_t store;
    case_t memory;

    segment_make(&segment, 64, 1);
    begin_store(&memory, &store, &config);
    request = segment_request(&segment, &identity, ten);
    memset(&vhost, 0, sizeof(vhost));
    vhost.table = &segment.table;
    vhost.store = &store;
    vhost.store_stats = &stats;
    vhost.store_row = segment.rows[1];
    step_ms = slow_ms;
    rlr_decide_store_admit(&vhost, segment_rows[0], &request, &decision);
    step_ms = 0;
    end(&memory);
    munmap(segment.memory, segment.size);
    return decision.window.admitted ? decision.window.at_ms : 0;
}

static void no_request_is_admitted_after_the_share(void **state)
{
    uint64_t end_ms = 1000000 - CUT_OFF_MS + SHARE_MS;
    uint32_t admitted = 0;

    for (uint64_t slow_ms = 0; slow_ms < SHARE_MS; slow_ms += 500) {
        uint64_t at_ms = admit_slowly(slow_ms);

        admitted += at_ms > 0;
        assert_true(at_ms < end_ms);
    }
    assert_true(admitted > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(an_admission_counts_from_when_the_process_goes_on),
        CHECK_TEST(a_process_that_is_stopped_admits_nothing_after_the_share),
        CHECK_TEST(a_process_that_is_stopped_admits_nothing_by_a_former_table),
        CHECK_TEST(no_request_is_admitted_after_the_share),
    };

    return CHECK_RUN(tests);
}
