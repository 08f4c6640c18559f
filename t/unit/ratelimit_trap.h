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

#include "ratelimit_stage.h"
#include "ratelimit_step.h"

#define TRAP_FLAG 0x100

/* The test of the trap's handler. */
static struct {
    stage_t *stage;
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
        trap.interruption(trap.stage);
        return;
    }
    waitpid(pid, &status, 0);
    trap.problems += status != 0;
}
#endif

static void run_trapped(stage_t *stage, part_t request)
{
#if HAS_TRAPS
    struct sigaction action = {.sa_flags = SA_SIGINFO};

    action.sa_sigaction = handle_trap;
    sigaction(SIGTRAP, &action, NULL);
    set_trap_flag();
    request(stage);
    clear_trap_flag();
#else
    request(stage);
#endif
}

/* Long requests are interrupted at some instructions only, by default. */
static unsigned get_stride(bool is_long)
{
#if defined(__SANITIZE_ADDRESS__)
    return is_long ? 31 : 5; /* more instructions, and slow to fork */
#else
    return is_long && sim_effort() < 3 ? 3 : 1;
#endif
}

/* Tests the interruption before each instruction of the request, or before
 * some of a long one. */
static void play(part_t prepare, part_t request, part_t interruption,
                 judge_t judge, bool is_long)
{
    stage_t stage;
    const char *problem;

    memset(&stage, 0, sizeof(stage));
    memset(&trap, 0, sizeof(trap));
    trap.stage = &stage;
    trap.interruption = interruption;
    trap.stride = get_stride(is_long);
    stage.time.us = 5000000000ULL;
    stage.clock.read = sim_read;
    stage.clock.baton = &stage.time;
    sim_log_make(&stage.log, 8192);
    prepare(&stage);
    run_trapped(&stage, request);
    if (trap.is_child) {
        problem = judge(&stage);
        if (problem != NULL && trap.problems == 0) {
            printf("# before instruction %u: %s\n", trap.instructions, problem);
            fflush(stdout);
        }
        _exit(problem != NULL);
    }
    problem = judge(&stage);
    sim_log_drop(&stage.log);
    assert_null(problem);
    assert_int_equal(trap.problems, 0);
    assert_true(!HAS_TRAPS || trap.instructions > 100);
}

#endif
