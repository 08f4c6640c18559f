/* SPDX-License-Identifier: Apache-2.0 */
/* Steps a process through a request and checks the memory that it would leave
 * if it died after each of its writes. */
#ifndef AGENT_T_UNIT_RATELIMIT_DEATH_H
#define AGENT_T_UNIT_RATELIMIT_DEATH_H

#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../mod_ratelimit_regional/counter/layout.h"
#include "ratelimit_segment.h"

/* The word of a lock whose owner died (FUTEX_OWNER_DIED). */
#define OWNER_DIED 0x40000000

/* A test of a death: preparation, the child's action, the check. */
typedef struct death_t {
    uint32_t slots;
    void (*prepare)(segment_t *segment);
    void (*act)(segment_t *segment);
    void (*verify)(segment_t *segment);
} death_t;

/* The thread sanitizer adds so many instructions that it would take minutes. */
#if defined(__SANITIZE_THREAD__)
#define CAN_STEP 0
#else
#define CAN_STEP 1
#endif

/* Starts the child, stopped before its request; 0 if tracing is forbidden. */
static pid_t start_child(const death_t *death, segment_t *segment)
{
    pid_t pid = CAN_STEP ? fork() : -1;
    int status;

    if (pid < 0) {
        return 0;
    }
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(77);
        }
        raise(SIGSTOP);
        death->act(segment);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSTOPPED(status) ? pid : 0;
}

/* Executes one instruction; false once the child has exited. */
static bool step_child(pid_t pid)
{
    int status;

    ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
    waitpid(pid, &status, 0);
    return WIFSTOPPED(status);
}

/* Copies the table that the child leaves if it dies now. */
static segment_t copy_of_dead(const segment_t *segment, void *memory, pid_t pid)
{
    segment_t left = *segment;

    memcpy(memory, segment->memory, segment->size);
    left.memory = memory;
    assert_int_equal(rlr_segment_attach(&left.table, memory, left.size,
                                        segment_rows, 3, left.rows),
                     RLR_TABLE_OK);
    /* The child's view, not that of a later configuration. */
    left.table.generation = segment->table.generation;
    for (uint32_t i = 0; i < RLR_LOCKS; i++) {
        int *word = &left.table.locks[i].mutex.__data.__lock;

        if ((*word & OWNER_MASK) == pid) {
            *word = OWNER_DIED;
        }
    }
    return left;
}

static void verify_death(const death_t *death, const segment_t *segment,
                         void *memory, pid_t pid)
{
    segment_t left = copy_of_dead(segment, memory, pid);

    left.clock.baton = &left.time;
    assert_null(rlr_walk_validate(&left.table, &left.clock));
    death->verify(&left);
    assert_null(rlr_walk_validate(&left.table, &left.clock));
}

/* Data under a lock changes only while the child holds the lock. */
static void verify_locks(const segment_t *segment, const void *last, pid_t pid)
{
    const rlr_table_t *table = &segment->table;
    const char *base = segment->memory;
    const char *before = last;

    for (uint32_t set = 0; set < table->sets; set++) {
        size_t tags = (size_t)((const char *)&table->tags[set] - base);
        int owner = table->locks[set % RLR_SET_LOCKS].mutex.__data.__lock;
        bool changed = memcmp(base + tags, before + tags, 64) != 0;

        for (uint32_t way = 0; way < RLR_WAYS; way++) {
            const rlr_slot_t *slot = rlr_layout_slot(table, set, way);
            const rlr_slot_t *old = (const void *)(before
                                                   + ((const char *)slot
                                                      - base));

            changed = changed || slot->window.owner != old->window.owner
                || slot->window.limit != old->window.limit;
        }
        assert_true(!changed || (owner & OWNER_MASK) == pid);
    }
}

#endif
