/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent-runner: executes the built-in graphs. It uses the protocol of
 * runners/PROTOCOL.md on the descriptors 3 (in) and 4 (out), and exits with its
 * parent process.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "runner.h"
#include "runners/builtin/base/memory.h"

#define IN_FD  3
#define OUT_FD 4
/* Memory of ended runs that is kept for the next ones. */
#define POOL_KEPT ((apr_size_t)4 * 1024 * 1024)

/* Reads the command line, which is empty or "--slots N"; 0 when malformed. */
static int read_slots(int argc, char **argv)
{
    apr_int64_t slots;
    char *end;

    if (argc == 1) {
        return RUNNER_SLOTS_DEFAULT;
    }
    if (argc != 3 || strcmp(argv[1], "--slots") != 0) {
        return 0;
    }
    slots = apr_strtoi64(argv[2], &end, 10);
    if (*end != '\0' || slots < 1 || slots > RUNNER_SLOTS_MAX) {
        return 0;
    }
    return (int)slots;
}

/* False when the parent has already exited. */
static int follow_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    /* It may have exited before the call above. */
    return getppid() == parent;
}

int main(int argc, char **argv)
{
    pid_t parent = getppid();
    apr_pool_t *pool;
    int slots = read_slots(argc, argv);
    int exit_code;

    if (slots == 0) {
        fprintf(stderr,
                "usage: %s [--slots N]\n  N: runs at once, 1 to %d "
                "(default: %d)\n",
                argv[0], RUNNER_SLOTS_MAX, RUNNER_SLOTS_DEFAULT);
        return 64;
    }
    if (!follow_parent(parent)) {
        return 0;
    }
    /* The memory holds the keys of models: processes of the same user must not
     * read it. */
    prctl(PR_SET_DUMPABLE, 0);
    signal(SIGPIPE, SIG_IGN);
    apr_initialize();
    atexit(apr_terminate);
    apr_pool_create_ex(&pool, NULL, runner_memory_abort, NULL);
    apr_allocator_max_free_set(apr_pool_allocator_get(pool), POOL_KEPT);
    exit_code = runner_serve(IN_FD, OUT_FD, slots, pool);
    apr_pool_destroy(pool);
    return exit_code;
}
