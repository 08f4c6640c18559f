/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/process/cgroup.c */
/* The files of the cgroups of pools, in a plain directory; see
 * supervisor/process/cgroup.h. supervisor/cgroups.t has the rest. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../../mod_agent/supervisor/process/cgroup.h"

#define NAME "agent-1-0-shop"

typedef struct directory_t {
    char path[64];
    int fd;
} directory_t;

static directory_t make_directory(void)
{
    directory_t directory = {.path = "/tmp/agent-test-cgroup.XXXXXX"};

    assert_non_null(mkdtemp(directory.path));
    directory.fd = open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(directory.fd >= 0);
    return directory;
}

static void remove_directory(const directory_t *directory)
{
    close(directory->fd);
    assert_int_equal(rmdir(directory->path), 0);
}

static void make_file(int fd, const char *name)
{
    int file = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(file >= 0);
    close(file);
}

static void expect_file(int fd, const char *name, const char *expected)
{
    char text[64] = "";
    int file = openat(fd, name, O_RDONLY | O_CLOEXEC);

    assert_true(file >= 0);
    assert_true(read(file, text, sizeof(text) - 1) >= 0);
    assert_string_equal(text, expected);
    close(file);
    unlinkat(fd, name, 0);
}

static void a_process_enters_a_cgroup_with_its_limits(void **state)
{
    const agent_cgroup_limits_t limits = {.memory = APR_INT64_C(1) << 40,
                                          .processes = 500,
                                          .cpu_percent = 100000};
    directory_t directory = make_directory();
    const char *failed;
    int own;

    assert_int_equal(mkdirat(directory.fd, NAME, 0700), 0);
    own = openat(directory.fd, NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_file(own, "memory.max");
    make_file(own, "pids.max");
    make_file(own, "cpu.max");
    make_file(own, "cgroup.procs");
    assert_int_equal(
        agent_cgroup_enter(&failed, directory.fd, NAME, &limits, 4711),
        APR_SUCCESS);
    expect_file(own, "memory.max", "1099511627776");
    expect_file(own, "pids.max", "500");
    expect_file(own, "cpu.max", "100000000 100000");
    expect_file(own, "cgroup.procs", "4711");
    close(own);
    assert_true(agent_cgroup_remove(directory.fd, NAME));
    remove_directory(&directory);
}

static void a_limit_of_0_needs_no_controller(void **state)
{
    const agent_cgroup_limits_t limits = {0};
    directory_t directory = make_directory();
    const char *failed;
    int own;

    assert_int_equal(mkdirat(directory.fd, NAME, 0700), 0);
    own = openat(directory.fd, NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_file(own, "cgroup.procs");
    assert_int_equal(
        agent_cgroup_enter(&failed, directory.fd, NAME, &limits, 4711),
        APR_SUCCESS);
    expect_file(own, "cgroup.procs", "4711");
    close(own);
    assert_true(agent_cgroup_remove(directory.fd, NAME));
    remove_directory(&directory);
}

static void a_missing_controller_is_named(void **state)
{
    const agent_cgroup_limits_t limits = {.processes = 10};
    directory_t directory = make_directory();
    const char *failed = NULL;

    assert_int_equal(
        agent_cgroup_enter(&failed, directory.fd, NAME, &limits, 4711),
        APR_FROM_OS_ERROR(ENOENT));
    assert_string_equal(failed, "pids.max");
    assert_true(agent_cgroup_remove(directory.fd, NAME));
    remove_directory(&directory);
}

static void a_plain_directory_is_no_cgroup(void **state)
{
    const agent_cgroup_limits_t limits = {0};
    agent_cgroup_problem_t problem;
    int fd;

    assert_int_equal(agent_cgroup_open(&fd, "/tmp"), APR_ENOTIMPL);
    assert_int_equal(fd, -1);
    assert_int_equal(agent_cgroup_check(&problem, "/tmp", &limits),
                     APR_ENOTIMPL);
    assert_string_equal(problem.expected,
                        "a directory in a file system of cgroup v2");
    assert_int_equal(agent_cgroup_check(&problem, "/nowhere", &limits),
                     APR_FROM_OS_ERROR(ENOENT));
    assert_string_equal(problem.failed, "open");
}

static pid_t start_process(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    assert_true(pid > 0);
    return pid;
}

/* A name of 0 is a process that is not visible here. */
static void processes_are_killed_without_the_file_for_it(void **state)
{
    directory_t directory = make_directory();
    pid_t pids[] = {start_process(), start_process()};
    int status;
    int own;
    int file;

    assert_int_equal(mkdirat(directory.fd, NAME, 0700), 0);
    own = openat(directory.fd, NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    file = openat(own, "cgroup.procs", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    /* Longer than what is read at once. */
    for (int i = 0; i < 1001; i++) {
        assert_true(dprintf(file, "0\n") > 0);
    }
    assert_true(dprintf(file, "%d\n%d\n", (int)pids[0], (int)pids[1]) > 0);
    close(file);
    agent_cgroup_remove(directory.fd, NAME);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFSIGNALED(status));
    }
    assert_int_equal(unlinkat(own, "cgroup.procs", 0), 0);
    close(own);
    assert_true(agent_cgroup_remove(directory.fd, NAME));
    remove_directory(&directory);
}

static void only_cgroups_of_dead_spawners_are_stale(void **state)
{
    char dead[AGENT_CGROUP_NAME_SIZE];
    char alive[AGENT_CGROUP_NAME_SIZE];
    directory_t directory = make_directory();
    pid_t pid = fork();

    if (pid == 0) {
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    agent_cgroup_print_name(dead, pid, 0, "shop");
    agent_cgroup_print_name(alive, getpid(), 1, "desk");
    assert_int_equal(mkdirat(directory.fd, dead, 0700), 0);
    assert_int_equal(mkdirat(directory.fd, alive, 0700), 0);
    assert_int_equal(mkdirat(directory.fd, "agent-x", 0700), 0);
    assert_int_equal(mkdirat(directory.fd, "other", 0700), 0);
    agent_cgroup_remove_stale(directory.fd);
    assert_int_equal(faccessat(directory.fd, dead, F_OK, 0), -1);
    assert_int_equal(unlinkat(directory.fd, alive, AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(directory.fd, "agent-x", AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(directory.fd, "other", AT_REMOVEDIR), 0);
    remove_directory(&directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_process_enters_a_cgroup_with_its_limits),
        CHECK_TEST(a_limit_of_0_needs_no_controller),
        CHECK_TEST(a_missing_controller_is_named),
        CHECK_TEST(a_plain_directory_is_no_cgroup),
        CHECK_TEST(processes_are_killed_without_the_file_for_it),
        CHECK_TEST(only_cgroups_of_dead_spawners_are_stale),
    };

    return CHECK_RUN(tests);
}
