/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/process/process.c */
/* The marks of processes; see supervisor/process/process.h. */
#include "check.h"

#include <unistd.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../../mod_agent/supervisor/process/process.h"

/* Whether a process without privileges may mark others, with that hard limit
 * and else without limits. */
static bool can_mark(int resource, rlim_t hard)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        const struct rlimit limit = {hard, hard};
        bool is_set = setrlimit(resource, &limit) == 0;

        _exit(is_set
                      && (geteuid() != 0
                          || agent_process_become(65534, 65534) == APR_SUCCESS)
                  ? agent_process_can_mark()
                  : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

static void processes_can_be_marked_without_hard_limits(void **state)
{
    struct rlimit memory;
    struct rlimit locks;

    getrlimit(RLIMIT_RSS, &memory);
    getrlimit(RLIMIT_LOCKS, &locks);
    if (memory.rlim_max != RLIM_INFINITY || locks.rlim_max != RLIM_INFINITY) {
        skip();
    }
    assert_true(can_mark(RLIMIT_RSS, RLIM_INFINITY));
}

static void processes_cannot_be_marked_with_a_lower_hard_limit(void **state)
{
    assert_false(can_mark(RLIMIT_RSS, 1024 * 1024));
    assert_false(can_mark(RLIMIT_LOCKS, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(processes_can_be_marked_without_hard_limits),
        CHECK_TEST(processes_cannot_be_marked_with_a_lower_hard_limit),
    };

    return CHECK_RUN(tests);
}
