/* SPDX-License-Identifier: Apache-2.0 */
/* The command `agentctl build`; see build_command.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "build_command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../../core/json.h"
#include "../../core/quantity.h"
#include "build.h"
#include "command.h"
#include "../base/duration.h"
#include "../base/output.h"

/* The limits of AgentRunnerMemory. */
#define MEMORY_LEAST    (APR_INT64_C(64) << 20)
#define MEMORY_MOST     (APR_INT64_C(1) << 40)
#define MEMORY_DEFAULT  (APR_INT64_C(1) << 30)
#define TIMEOUT_DEFAULT "5min"

const ctl_option_t ctl_build_options[] = {
    {"user", "NAME", CTL_USER,
     "who installs and imports (root only; default: the\n"
     "owner of DIRECTORY); the user of its runners,\n"
     "AgentRunnerUser"},
    {"python", "PROGRAM", CTL_PYTHON,
     "makes the virtual environment (default: python3)"},
    {"node", "PROGRAM", CTL_NODE,
     "executes JavaScript (default: the first in PATH that is\n"
     "new enough, as root in the folders of the system; else\n"
     "that of a Python package, which is installed)"},
    {"runners", "FOLDER", CTL_RUNNERS,
     "the runners (default: those installed with agentctl)"},
    {"memory", "SIZE", CTL_MEMORY,
     "memory of the import of the graphs, as\n"
     "AgentRunnerMemory: 0, or 64M to 1024G (default: 1G)"},
    {"timeout", "DURATION", CTL_TIMEOUT,
     "time for the import of the graphs, 1s to 1d\n"
     "(default: " TIMEOUT_DEFAULT ")"},
    {"ignore-auth", NULL, CTL_IGNORE_AUTH,
     "build although langgraph.json has `auth`, which has no\n"
     "effect: httpd decides who may send requests"},
    {"schemas", NULL, CTL_SCHEMAS,
     "print the whole JSON schemas of the graphs"},
    {"json", NULL, CTL_JSON,
     "at the end print one object with name, graphs and\n"
     "directives; all else goes to standard error"},
    {NULL, NULL, 0, NULL}};

/* The folder `runners` beside this program, or that of the installation. */
static const char *find_runners(apr_pool_t *pool)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash;

    if (length > 0) {
        const char *beside;

        path[length] = '\0';
        slash = strrchr(path, '/');
        *slash = '\0';
        beside = apr_pstrcat(pool, path, "/runners", NULL);
        if (access(beside, R_OK) == 0) {
            return beside;
        }
    }
    slash = strrchr(AGENT_RUNNER_PATH, '/');
    return apr_pstrcat(pool,
                       apr_pstrndup(pool, AGENT_RUNNER_PATH,
                                    (apr_size_t)(slash - AGENT_RUNNER_PATH)),
                       "/runners", NULL);
}

/* Waits until the build has ended; returns its status as waitpid(). A program
 * of the application has the same user as the build, and can stop it: then, and
 * at a second signal, the build is killed. Nothing is printed here, where a
 * pipe without a reader would keep signals away. Sets *stopped to the signal
 * that stopped it; 0 for none. */
static int follow(pid_t pid, const sigset_t *signals, int *stopped)
{
    bool was_asked = false;
    int status;

    *stopped = 0;
    for (;;) {
        int number = sigwaitinfo(signals, NULL);

        if (number == SIGCHLD) {
            if (waitpid(pid, &status, WNOHANG | WUNTRACED) != pid) {
                continue;
            }
            if (!WIFSTOPPED(status)) {
                return status;
            }
            kill(pid, SIGKILL);
            *stopped = WSTOPSIG(status);
        }
        else if (number > 0) {
            kill(pid, was_asked ? SIGKILL : number);
            was_asked = true;
        }
    }
}

/* Nothing of the build survives it. A program that forks faster than it is
 * killed does not keep this process from being ended: the next signal ends it.
 */
static void end_rest(const sigset_t *signals, const sigset_t *before)
{
    static const struct timespec none;

    while (sigtimedwait(signals, NULL, &none) > 0) {
    }
    sigprocmask(SIG_SETMASK, before, NULL);
    ctl_command_end_adopted();
}

/* Builds in a session of its own, without root's terminal: a process of the
 * user that has the same one can type commands into it (TIOCSTI). This process
 * stays root's, so that the user cannot use it for that. */
static int build_apart(ctl_build_t *build)
{
    sigset_t signals;
    sigset_t before;
    pid_t pid;
    int status;
    int stopped;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, &before);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid = fork();
    if (pid < 0) {
        ctl_error("fork: %s", strerror(errno));
        return 1;
    }
    if (pid == 0) {
        setsid();
        sigprocmask(SIG_SETMASK, &before, NULL);
        return ctl_build(build);
    }
    status = follow(pid, &signals, &stopped);
    end_rest(&signals, &before);
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    if (stopped != 0) {
        ctl_error("the build was killed: a signal had stopped it: %s",
                  strsignal(stopped));
        return 1;
    }
    ctl_error("the build was ended by a signal: %s",
              strsignal(WTERMSIG(status)));
    return 1;
}

/* The build changes its working directory. A name without a slash is left as it
 * is, for the search in PATH. */
static const char *make_absolute(const char *path, apr_pool_t *pool)
{
    char *absolute = path != NULL && strchr(path, '/') != NULL
        ? realpath(path, NULL)
        : NULL;
    const char *copy = absolute != NULL ? apr_pstrdup(pool, absolute) : path;

    free(absolute);
    return copy;
}

/* A name as AgentApplication takes it, from that of the folder. Files named
 * after it are not hidden. */
static const char *make_name(const char *folder, apr_pool_t *pool)
{
    char *name;

    folder += strspn(folder, ".");
    name = apr_pstrndup(pool, folder[0] != '\0' ? folder : "application",
                        AGENT_APPLICATION_NAME_MAX);

    for (char *c = name; *c != '\0'; c++) {
        if (!apr_isalnum(*c) && strchr("_-.", *c) == NULL) {
            *c = '-';
        }
    }
    return name;
}

/* Returns the absolute path with its links, which show who decides where it
 * leads. */
static const char *keep_links(const char *argument, apr_pool_t *pool)
{
    char *working = argument[0] != '/' ? realpath(".", NULL) : NULL;
    const char *path = working != NULL
        ? apr_pstrcat(pool, working, "/", argument, NULL)
        : argument;

    free(working);
    return path;
}

/* Both set the value of an option; text: NULL if it was not given. They return
 * an exit status, after printing why. */

static int read_memory(apr_int64_t *bytes, const char *text)
{
    *bytes = MEMORY_DEFAULT;
    if (text == NULL
        || (agent_quantity_read_size(bytes, text)
            && (*bytes == 0
                || (*bytes >= MEMORY_LEAST && *bytes <= MEMORY_MOST)))) {
        return CTL_DONE;
    }
    ctl_error("--memory: expected 0, or 64M to 1024G, got '%s'", text);
    return CTL_USAGE;
}

static int read_timeout(apr_int64_t *seconds, const char *text)
{
    static const ctl_duration_range_t range = {"1s", "1d", "s"};

    return ctl_duration_read(seconds, "timeout",
                             text != NULL ? text : TIMEOUT_DEFAULT, &range);
}

int ctl_build_command_run(const ctl_arguments_t *arguments)
{
    const char *const *text = arguments->text;
    apr_pool_t *pool = arguments->pool;
    char *directory = realpath(arguments->operand, NULL);
    ctl_build_t build = {.pool = pool};
    ctl_build_options_t *options = &build.options;
    apr_int64_t timeout_sec;

    if (directory == NULL) {
        ctl_error("%s: %s", arguments->operand, strerror(errno));
        return CTL_USAGE;
    }
    build.application.directory = apr_pstrdup(pool, directory);
    free(directory);
    if (read_memory(&options->memory, text[CTL_MEMORY]) != CTL_DONE
        || read_timeout(&timeout_sec, text[CTL_TIMEOUT]) != CTL_DONE) {
        return CTL_USAGE;
    }
    if (arguments->flag[CTL_JSON]) {
        build.lines = agent_json_own(json_object_new_array(), pool);
        ctl_output_divert();
    }
    options->timeout_sec = (int)timeout_sec;
    options->user = text[CTL_USER];
    options->prints_schemas = arguments->flag[CTL_SCHEMAS];
    options->argument = keep_links(arguments->operand, pool);
    options->python = make_absolute(text[CTL_PYTHON], pool);
    options->node = make_absolute(text[CTL_NODE], pool);
    options->runners = text[CTL_RUNNERS] != NULL
        ? make_absolute(text[CTL_RUNNERS], pool)
        : find_runners(pool);
    build.application.name = make_name(
        strrchr(build.application.directory, '/') + 1, pool);
    build.application.ignores_auth = arguments->flag[CTL_IGNORE_AUTH];
    return geteuid() == 0 ? build_apart(&build) : ctl_build(&build);
}
