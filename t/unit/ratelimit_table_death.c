/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* Not under valgrind: it stops at single instructions. */
/*
 * Death at any instruction. A child makes one request, and its parent steps it
 * instruction by instruction. Whenever the shared memory has changed, the
 * parent copies it as if the child were dead: its locks are marked as the
 * kernel marks the robust locks of a dead process. The copy is then checked.
 * (Killed processes: ratelimit_table_concurrent.c.)
 */
#include "check.h"

#include "ratelimit_death.h"
#include "ratelimit_share.h"

static const rlr_limit_t five = {5, 10};
static const rlr_limit_t eight = {8, 10};
static const rlr_limit_t sixty_four = {64, 10};

/* The key of the child's request. */
static uint64_t child_key = 7;

/* A decision without a time is that of a failed lock or window. */
static rlr_window_decision_t admit(segment_t *segment, uint64_t key,
                                   rlr_limit_t limit)
{
    rlr_window_decision_t decision = segment_admit(segment, key, limit).window;

    assert_int_not_equal(decision.at_ms, 0);
    return decision;
}

static uint32_t use_up(segment_t *segment, uint64_t key, rlr_limit_t limit)
{
    uint32_t admitted = 0;

    while (admit(segment, key, limit).admitted) {
        admitted++;
    }
    return admitted;
}

/* The child's request, with each of the limits. */
static void admit_five(segment_t *segment)
{
    segment_admit(segment, child_key, five);
}

static void admit_sixty_four(segment_t *segment)
{
    segment_admit(segment, child_key, sixty_four);
}

static void admit_eight(segment_t *segment)
{
    segment_admit(segment, child_key, eight);
}

/* All other keys have used up their five. */
static void verify_others(segment_t *segment, uint64_t first, uint64_t end)
{
    for (uint64_t key = first; key < end; key++) {
        assert_int_equal(use_up(segment, key, five), 0);
    }
}

static void prepare_neighbours(segment_t *segment)
{
    for (uint64_t key = 100; key < 108; key++) {
        use_up(segment, key, five);
    }
}

/* The child's admission was counted, or it was not. */
static void verify_new_key(segment_t *segment)
{
    assert_in_range(use_up(segment, child_key, five), 4, 5);
    verify_others(segment, 100, 108);
}

/* Each key whose slot it may have been gets a decision. */
static void verify_former_keys(segment_t *segment)
{
    void *left = malloc(segment->size);

    memcpy(left, segment->memory, segment->size);
    for (uint64_t key = 1000; key < 1016; key++) {
        admit(segment, key, five);
        memcpy(segment->memory, left, segment->size);
    }
    free(left);
}

/* All slots claimed, all but a few by dead keys. */
static void prepare_dead_keys(segment_t *segment)
{
    for (uint64_t key = 1000; key < 2000; key++) {
        segment_admit(segment, key, five);
    }
    segment->time.us += 11000000;
    prepare_neighbours(segment);
}

static void prepare_known_key(segment_t *segment)
{
    prepare_neighbours(segment);
    segment_admit(segment, child_key, eight);
    segment_admit(segment, child_key, eight);
    segment_admit(segment, child_key, eight);
}

static void verify_known_key(segment_t *segment)
{
    assert_in_range(use_up(segment, child_key, eight), 4, 5);
    verify_others(segment, 100, 108);
}

/* All marks are in use, the older half expired. */
static void prepare_expired_marks(segment_t *segment)
{
    for (int i = 0; i < 64; i++) {
        segment_admit(segment, child_key, sixty_four);
        segment->time.us += 100000;
    }
    segment->time.us += 6750000;
}

static void verify_full_key(segment_t *segment)
{
    assert_in_range(use_up(segment, child_key, sixty_four), 31, 32);
}

/* All slots have live keys; no overflow window has been built. */
static void prepare_full_table(segment_t *segment)
{
    for (uint64_t key = 100;
         rlr_walk_live_keys(&segment->table, (uint32_t[3]){0}, 3,
                            &segment->clock)
         < 16;
         key++) {
        segment_admit(segment, key, five);
    }
    segment->time.us += 9000000;
    for (uint64_t key = 100; key < 2000; key++) {
        rlr_table_request_t request = segment_request(segment, &key, five);

        if (rlr_table_knows(&segment->table, &request)) {
            segment_admit(segment, key, five);
        }
    }
    segment->time.us += 2000000;
}

/* It was built for eight and counts five of this key. */
static void prepare_overflow_window(segment_t *segment)
{
    prepare_full_table(segment);
    assert_int_equal(use_up(segment, child_key, five), 5);
}

static void verify_widened(segment_t *segment)
{
    assert_int_equal(use_up(segment, child_key, five), 0);
    assert_in_range(use_up(segment, child_key, eight), 2, 3);
}

static void verify_overflow(segment_t *segment)
{
    assert_in_range(use_up(segment, child_key, five), 4, 5);
}

/* Charged to the overflow window; then slots become free. */
static void prepare_overflow_key(segment_t *segment)
{
    prepare_full_table(segment);
    for (int i = 0; i < 3; i++) {
        assert_true(segment_admit(segment, child_key, five).overflow);
    }
    segment->time.us += 8500000;
}

static void verify_overflow_key(segment_t *segment)
{
    assert_in_range(use_up(segment, child_key, five), 1, 2);
}

/* The limit has changed from five to eight, and five are used. */
static void prepare_old_limit(segment_t *segment)
{
    prepare_neighbours(segment);
    use_up(segment, child_key, five);
}

static void verify_changed_limit(segment_t *segment)
{
    assert_in_range(use_up(segment, child_key, eight), 2, 3);
    verify_others(segment, 100, 108);
}

/* All slots belonged to other addresses, one each. */
static void prepare_slots_of_others(segment_t *segment)
{
    for (uint64_t key = 1000; key < 2000; key++) {
        segment->holder = key;
        segment_admit(segment, key, five);
    }
    segment->time.us += 11000000;
    segment->holder = 1;
    assert_int_equal(segment_excess(&segment->table), 0);
}

/* The address has its share of dead keys: one must be reclaimed for a new
 * one. */
static void prepare_dead_share(segment_t *segment)
{
    segment->holder = 1;
    for (uint64_t key = 1000; key < 1020; key++) {
        segment_admit(segment, key, five);
    }
    segment->time.us += 11000000;
    assert_true(rlr_share_is_full(
        &segment->table,
        rlr_share_holder(&segment->table, &segment->holder, 8)));
}

/* The address has its share of live keys: the new one uses the shared
 * counter. */
static void prepare_live_share(segment_t *segment)
{
    segment->holder = 1;
    for (uint64_t key = 1000; key < 1004; key++) {
        segment_admit(segment, key, five);
    }
}

/* Another process has died before. */
static void prepare_damaged_shares(segment_t *segment)
{
    prepare_slots_of_others(segment);
    segment->table.shares[5] += 2;
    rlr_repair_state_request(&segment->table);
}

/* A recovered lock makes the next new keys repair the counters. */
static void verify_shares(segment_t *segment)
{
    assert_in_range(use_up(segment, child_key, five), 4, 5);
    for (uint32_t set = 0; set < segment->table.sets; set++) {
        assert_true(rlr_lock_set(&segment->table, set));
        rlr_unlock_set(&segment->table, set);
    }
    segment->holder = 2;
    segment_admit(segment, 3000, five);
    segment_repair(&segment->table);
    assert_int_equal(segment_excess(&segment->table), 0);
}

static void test_death(const death_t *death)
{
    unsigned steps = 0;
    unsigned deaths = 0;
    segment_t segment;
    void *last;
    void *left;
    pid_t pid;

    segment_make(&segment, death->slots, 3);
    death->prepare(&segment);
    last = malloc(segment.size);
    memcpy(last, segment.memory, segment.size);
    left = segment_map(segment.size);
    pid = start_child(death, &segment);
    while (pid != 0 && step_child(pid)) {
        steps++;
        if (memcmp(last, segment.memory, segment.size) != 0) {
            verify_locks(&segment, last, pid);
            memcpy(last, segment.memory, segment.size);
            verify_death(death, &segment, left, pid);
            deaths++;
        }
    }
    print_message("# %u instructions, %u changes\n", steps, deaths);
    /* The child must have reached the request. */
    assert_true(pid == 0 || (steps > 200 && deaths >= 2));
    free(last);
    munmap(left, segment.size);
    segment_drop(&segment);
}

static void a_process_may_die_while_a_new_key_gets_a_slot(void **state)
{
    static const death_t death = {64, prepare_neighbours, admit_five,
                                  verify_new_key};

    /* Some get a slot in the first of their sets, some in another. */
    for (child_key = 1; child_key <= 7; child_key++) {
        test_death(&death);
    }
    child_key = 7;
}

static void a_process_may_die_while_a_slot_is_reused(void **state)
{
    static const death_t deaths[] = {
        {16, prepare_dead_keys, admit_five, verify_new_key},
        {16, prepare_dead_keys, admit_five, verify_former_keys}};

    test_death(&deaths[0]);
    test_death(&deaths[1]);
}

static void a_process_may_die_while_a_known_key_is_charged(void **state)
{
    static const death_t death = {64, prepare_known_key, admit_eight,
                                  verify_known_key};

    test_death(&death);
}

static void a_process_may_die_while_expired_marks_are_dropped(void **state)
{
    static const death_t death = {64, prepare_expired_marks, admit_sixty_four,
                                  verify_full_key};

    test_death(&death);
}

static void a_process_may_die_while_a_limit_is_changed(void **state)
{
    static const death_t death = {64, prepare_old_limit, admit_eight,
                                  verify_changed_limit};

    test_death(&death);
}

static void a_process_may_die_while_an_overflow_window_is_built(void **state)
{
    static const death_t death = {16, prepare_full_table, admit_five,
                                  verify_overflow};

    test_death(&death);
}

static void a_process_may_die_while_an_overflow_window_is_widened(void **state)
{
    static const death_t death = {16, prepare_overflow_window, admit_eight,
                                  verify_widened};

    test_death(&death);
}

static void a_process_may_die_while_an_overflow_key_gets_a_slot(void **state)
{
    static const death_t death = {16, prepare_overflow_key, admit_five,
                                  verify_overflow_key};

    test_death(&death);
}

static void a_process_may_die_while_a_slot_of_another_address_is_claimed(
    void **state)
{
    static const death_t death = {64, prepare_slots_of_others, admit_five,
                                  verify_shares};

    test_death(&death);
}

static void a_process_may_die_while_a_slot_is_reclaimed(void **state)
{
    static const death_t death = {64, prepare_dead_share, admit_five,
                                  verify_shares};

    test_death(&death);
}

static void a_process_may_die_while_the_counter_of_an_address_gets_a_slot(
    void **state)
{
    static const death_t death = {64, prepare_live_share, admit_five,
                                  verify_shares};

    test_death(&death);
}

static void a_process_may_die_while_shares_are_repaired(void **state)
{
    static const death_t death = {64, prepare_damaged_shares, admit_five,
                                  verify_shares};

    test_death(&death);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_process_may_die_while_a_new_key_gets_a_slot),
        CHECK_TEST(a_process_may_die_while_a_slot_is_reused),
        CHECK_TEST(a_process_may_die_while_a_known_key_is_charged),
        CHECK_TEST(a_process_may_die_while_expired_marks_are_dropped),
        CHECK_TEST(a_process_may_die_while_a_limit_is_changed),
        CHECK_TEST(a_process_may_die_while_an_overflow_window_is_built),
        CHECK_TEST(a_process_may_die_while_an_overflow_window_is_widened),
        CHECK_TEST(a_process_may_die_while_an_overflow_key_gets_a_slot),
        CHECK_TEST(
            a_process_may_die_while_a_slot_of_another_address_is_claimed),
        CHECK_TEST(a_process_may_die_while_a_slot_is_reclaimed),
        CHECK_TEST(
            a_process_may_die_while_the_counter_of_an_address_gets_a_slot),
        CHECK_TEST(a_process_may_die_while_shares_are_repaired)};

    return CHECK_RUN(tests);
}
