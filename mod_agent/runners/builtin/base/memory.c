/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrappers of the C library's allocation functions, for this program and all
 * its libraries (glibc's manual, "Replacing malloc": functions that are not
 * replaced remain the library's). Not in sanitized builds, which replace them
 * themselves.
 */
#include "memory.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "log.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#endif

void runner_memory_run_out(size_t wanted)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    getrlimit(RLIMIT_DATA, &limit);
    if (limit.rlim_cur == RLIM_INFINITY) {
        runner_log_write(NULL,
                         "out of memory: the system has no %lu more "
                         "bytes",
                         (unsigned long)wanted);
    }
    else {
        runner_log_write(NULL,
                         "out of memory: %lu bytes more would exceed the "
                         "limit of %lu MB (AgentRunnerMemory)",
                         (unsigned long)wanted,
                         (unsigned long)(limit.rlim_cur >> 20));
    }
    _exit(RUNNER_MEMORY_EXIT);
}

int runner_memory_abort(int status)
{
    runner_memory_run_out(0);
}

#if defined(__GLIBC__) && !defined(IS_SANITIZED)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static void *check(void *memory, size_t wanted)
{
    if (memory == NULL && wanted > 0) {
        runner_memory_run_out(wanted);
    }
    return memory;
}

void *malloc(size_t size)
{
    return check(__libc_malloc(size), size);
}

void *calloc(size_t nmemb, size_t size)
{
    return check(__libc_calloc(nmemb, size), nmemb > 0 ? size : 0);
}

void *realloc(void *ptr, size_t size)
{
    return check(__libc_realloc(ptr, size), size);
}

#endif
