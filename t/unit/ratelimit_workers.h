/* SPDX-License-Identifier: Apache-2.0 */
/* Concurrent workers, as threads or as processes that are killed, with shared
 * memory and a shared clock. */
#ifndef AGENT_T_UNIT_RATELIMIT_WORKERS_H
#define AGENT_T_UNIT_RATELIMIT_WORKERS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../mod_ratelimit_regional/counter/clock.h"

#define WORKERS 8

/* Simulated time, advanced by the workers, so that many intervals pass while
 * one is descheduled or killed. */
typedef struct workers_clock_t {
    _Atomic uint64_t us;
} workers_clock_t;

static inline void workers_read(rlr_time_t *now, void *baton)
{
    workers_clock_t *clock = baton;
    /* Monotonic for all, like the machine's clock. */
    uint64_t us = atomic_load_explicit(&clock->us, memory_order_seq_cst);

    now->floor_ms = us / 1000;
    now->ceil_ms = (us + 999) / 1000;
}

static inline void *workers_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        abort();
    }
    return memory;
}

typedef void (*workers_work_t)(void *shared, int worker);

typedef struct workers_task_t {
    workers_work_t work;
    void *shared;
    int worker;
} workers_task_t;

static inline void *workers_run_thread(void *baton)
{
    const workers_task_t *task = baton;

    task->work(task->shared, task->worker);
    return NULL;
}

static inline void workers_run_threads(workers_work_t work, void *shared)
{
    workers_task_t tasks[WORKERS];
    pthread_t threads[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        tasks[i] = (workers_task_t){work, shared, i};
        if (pthread_create(&threads[i], NULL, workers_run_thread, &tasks[i])
            != 0) {
            abort();
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static inline void workers_yield(int signal_number)
{
    sched_yield();
}

/* Yields every millisecond, at any instruction. */
static inline void workers_disturb(void)
{
    static const struct itimerval often = {{0, 1000}, {0, 1000}};

    signal(SIGALRM, workers_yield);
    setitimer(ITIMER_REAL, &often, NULL);
}

static inline pid_t workers_fork(workers_work_t work, void *shared, int worker)
{
    pid_t pid = fork();

    if (pid < 0) {
        abort();
    }
    if (pid == 0) {
        workers_disturb();
        work(shared, worker);
        _exit(0);
    }
    return pid;
}

/* Runs the workers as processes. `kills` times one of them is killed and
 * restarted with the same number. Returns the number of those killed at work,
 * or -1 if one failed. */
static inline int workers_run_processes(workers_work_t work, void *shared,
                                        int kills, uint64_t seed)
{
    pid_t pids[WORKERS];
    int killed = 0;
    bool good = true;
    int status;

    for (int i = 0; i < WORKERS; i++) {
        pids[i] = workers_fork(work, shared, i);
    }
    for (int i = 0; i < kills; i++) {
        int victim;

        seed = seed * 6364136223846793005U + 1442695040888963407U;
        victim = (int)(seed >> 40) % WORKERS;
        /* A random time, so that it dies anywhere in its work. */
        usleep((useconds_t)(seed >> 33) % 300);
        kill(pids[victim], SIGKILL);
        waitpid(pids[victim], &status, 0);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        good = good
            && (WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                                    : WEXITSTATUS(status) == 0);
        pids[victim] = workers_fork(work, shared, victim);
    }
    for (int i = 0; i < WORKERS; i++) {
        waitpid(pids[i], &status, 0);
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good ? killed : -1;
}

#endif
