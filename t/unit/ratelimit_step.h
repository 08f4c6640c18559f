/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's trap flag: the process gets a signal before each
 * instruction. */
#ifndef AGENT_T_UNIT_RATELIMIT_STEP_H
#define AGENT_T_UNIT_RATELIMIT_STEP_H

/* The thread sanitizer adds so many instructions that it would take minutes. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define HAS_TRAPS 1
#else
#define HAS_TRAPS 0
#endif

#if HAS_TRAPS
/* The red zone below the stack pointer may be in use. */
static inline void set_trap_flag(void)
{
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t"
                     "orq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp"
                     :
                     :
                     : "memory", "cc");
}

static inline void clear_trap_flag(void)
{
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t"
                     "andq $~0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp"
                     :
                     :
                     : "memory", "cc");
}
#else
static inline void set_trap_flag(void)
{
}

static inline void clear_trap_flag(void)
{
}
#endif

#endif
