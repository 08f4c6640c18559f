/* SPDX-License-Identifier: Apache-2.0 */
/* Included before each source of the build that counts executed lines: gcov's
 * counts are written by exit(), and here also by the calls that end a forked
 * process. */
#ifndef AGENT_T_COVERAGE_H
#define AGENT_T_COVERAGE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <gcov.h>
#include <unistd.h>

#define _exit(status)               (__gcov_dump(), _exit(status))
#define fexecve(program, argv, env) (__gcov_dump(), fexecve(program, argv, env))

#endif
