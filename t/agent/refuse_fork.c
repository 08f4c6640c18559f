/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: while the file that AGENT_TEST_REFUSE_FORK names exists, the
 * system has no room for another process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

pid_t fork(void)
{
    const char *file = getenv("AGENT_TEST_REFUSE_FORK");
    pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");

    if (file != NULL && access(file, F_OK) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return next();
}
