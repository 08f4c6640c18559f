/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/ */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* Not under valgrind: it stops at single instructions. */
/* Processes that are killed while they use leases: a mark covers each
 * admission, and the leases of other keys remain. */
#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../mod_ratelimit_regional/protocol/lease_table.h"
#include "ratelimit_step.h"

/* The keys before: enough for some in the same sets. */
#define KEYS 1500U
/* The process uses one of them, and one that is new. */
#define OLD_KEY 7U
#define NEW_KEY KEYS
#define AMOUNT  5U

static const rlr_limit_t large = {6400, 10};

/* Shared by both processes. */
typedef struct case_t {
    rlr_shared_t shared;
    uint32_t granted[KEYS + 1]; /* by calls that have returned */
    uint32_t admitted[KEYS + 1];
} case_t;

static void make_key(unsigned char *key, uint32_t number)
{
    memset(key, 0, RLR_MESSAGE_KEY_BYTES);
    memcpy(key + 8, &number, sizeof(number));
}

static rlr_lease_t *lock_key(case_t *test, uint32_t number)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES];

    make_key(key, number);
    return rlr_lease_table_lock(&test->shared, key, large, 1000);
}

static void grant(case_t *test, uint32_t number)
{
    static const rlr_message_grant_t granted = {AMOUNT, 0, 0, 0};
    rlr_lease_t *lease = lock_key(test, number);
    rlr_message_item_t item;

    rlr_lease_request(&item, lease, 1, number + 1, 1000);
    rlr_lease_grant(lease, &item, &granted, 1000, 1000);
    rlr_lease_table_unlock(&test->shared, lease);
    test->granted[number] += AMOUNT;
    test->admitted[number]++;
}

static void admit(case_t *test, uint32_t number)
{
    rlr_lease_t *lease = lock_key(test, number);
    rlr_lease_result_t result;
    uint64_t wait_ms;

    result = rlr_lease_take(lease, 1000, &wait_ms);
    rlr_lease_table_unlock(&test->shared, lease);
    test->admitted[number] += result == RLR_LEASE_ADMITTED;
}

static void work(case_t *test)
{
    admit(test, OLD_KEY);
    grant(test, OLD_KEY);
    grant(test, NEW_KEY);
    admit(test, NEW_KEY);
}

static case_t *begin(void)
{
    static const unsigned char id[RLR_MESSAGE_ID_BYTES] = {9};
    static const unsigned char secret[RLR_SHARED_SECRET_BYTES] = {6};
    size_t size = rlr_shared_size(16);
    case_t *test = mmap(NULL, sizeof(*test), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(rlr_shared_create(&test->shared, memory, 16, id, secret));
    for (uint32_t i = 0; i < KEYS; i++) {
        grant(test, i);
    }
    return test;
}

static void end(case_t *test)
{
    munmap(test->shared.memory, rlr_shared_size(16));
    munmap(test, sizeof(*test));
}

/* The marks of each key. */
static void report(case_t *test, uint32_t marked[KEYS + 1])
{
    rlr_message_mark_t marks[8 * RLR_LEASE_MARKS];
    uint32_t cursor = 0;
    uint32_t count;

    memset(marked, 0, (KEYS + 1) * sizeof(*marked));
    do {
        count = rlr_lease_table_report(marks, 8 * RLR_LEASE_MARKS, &cursor,
                                       &test->shared, 0, 1000);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t number;

            memcpy(&number, marks[i].key + 8, sizeof(number));
            assert_in_range(number, 0, KEYS);
            marked[number] += marks[i].amount;
        }
    } while (count > 0);
}

/* Admits from what is left of all leases. */
static void use_up(case_t *test)
{
    for (uint32_t i = 0; i <= KEYS; i++) {
        uint32_t before;

        do {
            before = test->admitted[i];
            admit(test, i);
        } while (test->admitted[i] > before);
    }
}

static void verify(case_t *test)
{
    static uint32_t marked[KEYS + 1];
    const rlr_partition_state_t *partition;

    report(test, marked);
    use_up(test);
    for (uint32_t i = 0; i <= KEYS; i++) {
        assert_true(marked[i] >= test->granted[i]);
        assert_true(marked[i] >= test->admitted[i]);
        if (i != OLD_KEY && i != NEW_KEY) {
            assert_int_equal(marked[i], AMOUNT);
            assert_int_equal(test->admitted[i], AMOUNT);
        }
    }
    partition = rlr_shared_lock(&test->shared, 0, 1000);
    assert_int_equal(partition->member.lost_until_ms, 0);
    rlr_shared_unlock(&test->shared, 0);
}

/* Instructions until the process kills itself. */
static unsigned steps_left;

static void count_steps(int signal_number)
{
    if (--steps_left == 0) {
        kill(getpid(), SIGKILL);
    }
}

/* Runs a process that dies before this instruction of its work. False: it has
 * finished. */
static bool kill_at(unsigned instruction)
{
    case_t *test = begin();
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        steps_left = instruction;
        signal(SIGTRAP, count_steps);
        set_trap_flag();
        work(test);
        clear_trap_flag();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    verify(test);
    end(test);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* With a sanitizer, of the same code, a few show that the next process reads no
 * wrong memory. */
#if defined(__SANITIZE_ADDRESS__)
#define STEP 501U
#else
#define STEP 53U
#endif

static void a_process_may_die_at_any_instruction(void **state)
{
    unsigned deaths = 0;

    while (HAS_TRAPS && kill_at(1 + deaths * STEP)) {
        deaths++;
    }
    print_message("# %u deaths\n", deaths);
    assert_true(!HAS_TRAPS || deaths >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_process_may_die_at_any_instruction),
    };

    return CHECK_RUN(tests);
}
