/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interruption at any instruction. A request runs with the processor's trap
 * flag set. Before each instruction the handler forks. The child executes, on
 * its copy of the memory, the action of another process, continues the
 * request, and checks: the decision and all later ones must be as if the two
 * had run one after the other. The parent continues with the next instruction.
 * Other processors than x86-64 skip this.
 */
#ifndef AGENT_T_UNIT_RATELIMIT_TRAP_H
#define AGENT_T_UNIT_RATELIMIT_TRAP_H

#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "ratelimit_fixture.h"
#include "ratelimit_step.h"

#define TRAP_FLAG 0x100

/* The test of the trap's handler. */
static struct {
    fixture_t *fixture;
    part_t interruption;
    unsigned instructions;
    unsigned stride;
    unsigned problems;
    bool is_child;
} trap;

#if HAS_TRAPS
/*
 * Forks a child with the thread id of its parent, as far as the C library
 * knows. fork() would set a new thread id; if the parent had just loaded its
 * own to lock a mutex, the child would lock it with the parent's id, could not
 * unlock it with its own, and would wait forever.
 */
static pid_t fork_same(void)
{
    return (pid_t)syscall(SYS_fork);
}

static void handle_trap(int signal_number, siginfo_t *info, void *context)
{
    ucontext_t *registers = context;
    pid_t pid;
    int status;

    if (trap.instructions++ % trap.stride != 0) {
        return;
    }
    pid = fork_same();
    if (pid == 0) {
        trap.is_child = true;
        registers->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
        trap.interruption(trap.fixture);
        return;
    }
    waitpid(pid, &status, 0);
    trap.problems += status != 0;
}
#endif

static void run_trapped(fixture_t *fixture, part_t request)
{
#if HAS_TRAPS
    struct sigaction action = {.sa_flags = SA_SIGINFO};

    action.sa_sigaction = handle_trap;
    sigaction(SIGTRAP, &action, NULL);
    set_trap_flag();
    request(fixture);
    clear_trap_flag();
#else
    request(fixture);
#endif
}

/* Long requests are interrupted at some instructions only, by default. With a
 * sanitizer, of the same code, a few show that no wrong memory is read. */
static unsigned get_stride(bool is_long)
{
#if defined(__SANITIZE_ADDRESS__)
    return is_long ? 151 : 23; /* more instructions, and slow to fork */
#else
    return is_long && sim_effort() < 3 ? 3 : 1;
#endif
}

/* Tests the interruption before each instruction of the request, or before
 * some of a long one. */
static void test_interrupted(part_t prepare, part_t request,
                             part_t interruption, verify_t verify, bool is_long)
{
    fixture_t fixture;
    const char *problem;

    memset(&fixture, 0, sizeof(fixture));
    memset(&trap, 0, sizeof(trap));
    trap.fixture = &fixture;
    trap.interruption = interruption;
    trap.stride = get_stride(is_long);
    fixture.time.us = 5000000000ULL;
    fixture.clock.read = sim_read;
    fixture.clock.baton = &fixture.time;
    sim_log_make(&fixture.log, 8192);
    prepare(&fixture);
    run_trapped(&fixture, request);
    if (trap.is_child) {
        problem = verify(&fixture);
        if (problem != NULL && trap.problems == 0) {
            printf("# before instruction %u: %s\n", trap.instructions, problem);
            fflush(stdout);
        }
        _exit(problem != NULL);
    }
    problem = verify(&fixture);
    sim_log_drop(&fixture.log);
    assert_null(problem);
    assert_int_equal(trap.problems, 0);
    assert_true(!HAS_TRAPS || trap.instructions > 100);
}

#endif
