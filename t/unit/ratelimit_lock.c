/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* Not under valgrind: it stops at single instructions. */
/* Processes that are killed while they hold locks or wait for them: the next
 * ones continue, and each slot is counted. */
#include "check.h"

#include <sched.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../mod_ratelimit_regional/counter/slot.h"
#include "../../mod_ratelimit_regional/counter/layout.h"
#include "ratelimit_share.h"
#include "ratelimit_step.h"

static const rlr_limit_t five = {5, 10};

/* ---- At any instruction ---- */

typedef void (*part_t)(segment_t *segment);

/* All slots belong to four addresses with four keys each, all dead. */
static void prepare_expired(segment_t *segment)
{
    for (segment->holder = 1; segment->holder <= 4; segment->holder++) {
        for (uint64_t key = 0; key < 4; key++) {
            segment_admit(segment, segment->holder * 1000 + key, five);
        }
    }
    segment->time.us += 11000000;
    segment->holder = 1;
}

static void sweep(segment_t *segment)
{
    rlr_slot_sweep(&segment->table,
                   rlr_share_holder(&segment->table, &segment->holder,
                                    sizeof(segment->holder)),
                   &segment->clock);
}

/* An earlier process died between a slot and its counter. */
static void prepare_damaged(segment_t *segment)
{
    prepare_expired(segment);
    for (uint32_t i = 0; i < 64; i += 3) {
        segment->table.shares[i] += 2;
    }
    rlr_repair_state_request(&segment->table);
}

static void repair(segment_t *segment)
{
    segment_repair(&segment->table);
}

/* A new key of each address; the first finds the lock of the dead process. */
static void verify_death_of(segment_t *segment)
{
    const rlr_table_t *table = &segment->table;

    assert_true(segment_least_excess(table) >= 0);
    for (segment->holder = 1; segment->holder <= 6; segment->holder++) {
        rlr_table_decision_t decision = segment_admit(
            segment, segment->holder * 1000 + 500, five);

        assert_true(decision.window.admitted);
        assert_true(segment_least_excess(table) >= 0);
    }
    for (uint32_t lock = 0; lock < RLR_SET_LOCKS; lock++) {
        assert_true(rlr_lock_set(table, lock));
        rlr_unlock_set(table, lock);
    }
    repair(segment);
    assert_false(rlr_repair_state_is_pending(table));
    assert_int_equal(segment_least_excess(table), 0);
    assert_int_equal(segment_excess(table), 0);
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
static bool kill_at(part_t prepare, part_t work, unsigned instruction)
{
    segment_t segment;
    int status;
    pid_t pid;

    segment_make(&segment, 64, 3);
    prepare(&segment);
    pid = fork();
    if (pid == 0) {
        steps_left = instruction;
        signal(SIGTRAP, count_steps);
        set_trap_flag();
        work(&segment);
        clear_trap_flag();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    verify_death_of(&segment);
    segment_drop(&segment);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Fewer deaths than instructions, since each starts from the beginning. With a
 * sanitizer, of the same code, a few show that the next process reads no wrong
 * memory. */
#if defined(__SANITIZE_ADDRESS__)
#define LEAST_DEATHS 3
#define WIDER        25
#else
#define LEAST_DEATHS 10
#define WIDER        1
#endif

static unsigned get_width(unsigned width)
{
    return (sim_effort() < 3 ? width : width / 5) * WIDER;
}

/* Odd steps, so that every instruction of repeated parts, like locking, is
 * hit. */
static void kill_everywhere(part_t prepare, part_t work, unsigned step)
{
    unsigned deaths = 0;

    while (HAS_TRAPS && kill_at(prepare, work, 1 + deaths * step)) {
        deaths++;
    }
    print_message("# %u deaths\n", deaths);
    assert_true(!HAS_TRAPS || deaths >= LEAST_DEATHS);
}

static void a_process_may_die_at_any_instruction_of_a_sweep(void **state)
{
    kill_everywhere(prepare_expired, sweep, get_width(35));
}

static void a_process_may_die_at_any_instruction_of_a_repair(void **state)
{
    kill_everywhere(prepare_damaged, repair, get_width(2025));
}

/* ---- More than one lock ---- */

/* Dies with two locks; all waiters for either continue. */
static void two_locks_of_a_dead_owner_are_recovered(void **state)
{
    segment_t segment;
    int status;

    segment_make(&segment, 64, 3);
    prepare_expired(&segment);
    if (fork() == 0) {
        rlr_lock_set(&segment.table, 2);
        rlr_lock_set(&segment.table, 5);
        raise(SIGKILL);
    }
    wait(&status);
    assert_true(WIFSIGNALED(status));
    sweep(&segment);
    assert_true(rlr_repair_state_is_pending(&segment.table));
    verify_death_of(&segment);
    segment_drop(&segment);
}

/* ---- Waiting for a lock ---- */

static void lock_and_leave(segment_t *segment)
{
    if (!rlr_lock_set(&segment->table, 0)) {
        _exit(1);
    }
    rlr_unlock_set(&segment->table, 0);
}

/* Starts a process that stops and then waits for the lock; 0 if tracing is
 * forbidden. */
static pid_t start_traced(segment_t *segment)
{
    pid_t pid = HAS_TRAPS ? fork() : -1;
    int status;

    if (pid < 0) {
        return 0;
    }
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(77);
        }
        raise(SIGSTOP);
        lock_and_leave(segment);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSTOPPED(status) ? pid : 0;
}

/* Waits until the process sleeps, or is stopped by its tracer. */
static void wait_until_asleep(pid_t pid)
{
    char path[32];
    char state = 'R';

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    while (state != 'S' && state != 't') {
        FILE *file = fopen(path, "r");

        assert_non_null(file);
        assert_int_equal(fscanf(file, "%*d %*s %c", &state), 1);
        fclose(file);
        sched_yield();
    }
}

/* Continues the stopped process until it is about to wait for a lock. */
static void run_to_wait(pid_t pid)
{
    struct __ptrace_syscall_info call = {.op = PTRACE_SYSCALL_INFO_NONE};
    int status;

    ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_TRACESYSGOOD);
    while (call.op != PTRACE_SYSCALL_INFO_ENTRY || call.entry.nr != SYS_futex) {
        ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSTOPPED(status));
        ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(call), &call);
    }
}

/* Two processes wait. The first is woken, the lock is taken before it runs,
 * and it is killed: it cannot wake the second. */
static void a_waiter_continues_if_the_woken_one_is_killed(void **state)
{
    segment_t segment;
    pid_t first;
    pid_t second;
    int status;

    segment_make(&segment, 64, 3);
    assert_true(rlr_lock_set(&segment.table, 0));
    first = start_traced(&segment);
    if (first != 0) {
        run_to_wait(first);
        ptrace(PTRACE_SYSCALL, first, NULL, NULL);
        wait_until_asleep(first);
    }
    second = fork();
    if (second == 0) {
        lock_and_leave(&segment);
        _exit(0);
    }
    wait_until_asleep(second);
    rlr_unlock_set(&segment.table, 0);
    if (first != 0) {
        assert_int_equal(waitpid(first, &status, 0), first);
        assert_true(rlr_lock_set(&segment.table, 0));
        kill(first, SIGKILL);
        assert_int_equal(waitpid(first, &status, 0), first);
        rlr_unlock_set(&segment.table, 0);
    }
    assert_int_equal(waitpid(second, &status, 0), second);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    segment_drop(&segment);
}

/* New keys of the sets are refused for a second as undecidable; known keys are
 * not affected. */
static void a_stopped_owner_does_not_stop_other_processes(void **state)
{
    segment_t segment;
    int status;
    pid_t pid;

    segment_make(&segment, 16, 3);
    assert_true(segment_admit(&segment, 1, five).window.admitted);
    pid = fork();
    if (pid == 0) {
        rlr_lock_set(&segment.table, 0);
        rlr_lock_set(&segment.table, 1);
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_true(segment_admit(&segment, 1, five).window.admitted);
    if (HAS_TRAPS) {
        rlr_window_decision_t decision = segment_admit(&segment, 2, five)
                                             .window;

        assert_false(decision.admitted);
        assert_int_equal(decision.wait_ms, 1000);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(segment_admit(&segment, 2, five).window.admitted);
    segment_drop(&segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_process_may_die_at_any_instruction_of_a_sweep),
        CHECK_TEST(a_process_may_die_at_any_instruction_of_a_repair),
        CHECK_TEST(two_locks_of_a_dead_owner_are_recovered),
        CHECK_TEST(a_waiter_continues_if_the_woken_one_is_killed),
        CHECK_TEST(a_stopped_owner_does_not_stop_other_processes)};

    return CHECK_RUN(tests);
}
