/* SPDX-License-Identifier: Apache-2.0 */
/* agentctl: prepares LangGraph applications for mod_agent. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_file_info.h>
#include <apr_general.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "build.h"
#include "say.h"

static const char usage[] =
    "usage: agentctl build [OPTION...] DIRECTORY\n"
    "\n"
    "Prepares the LangGraph application in DIRECTORY, which has a "
    "langgraph.json,\n"
    "for AgentApplication: installs its dependencies, imports its graphs, and\n"
    "prints what they take and return, and the lines for httpd.conf.\n"
    "\n"
    "  --user NAME       who installs and imports (root only; default: the "
    "owner\n"
    "                    of DIRECTORY); the user of its runners, "
    "AgentRunnerUser\n"
    "  --python PROGRAM  makes the virtual environment (default: python3)\n"
    "  --node PROGRAM    executes JavaScript (default: the first in PATH that "
    "is new\n"
    "                    enough, else that of a Python package, which is "
    "installed)\n"
    "  --runners FOLDER  the runners (default: those installed with agentctl)\n"
    "  --ignore-auth     build although langgraph.json has `auth`, which has "
    "no\n"
    "                    effect: httpd decides who may send requests\n"
    "  --schemas         print the whole JSON schemas of the graphs\n";

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

/* False: an option is wrong; getopt has said which. */
static bool read_options(ctl_build_t *build, int argc, char **argv)
{
    static const struct option options[] = {
        {"user", required_argument, NULL, 'u'},
        {"python", required_argument, NULL, 'p'},
        {"node", required_argument, NULL, 'n'},
        {"runners", required_argument, NULL, 'r'},
        {"ignore-auth", no_argument, NULL, 'a'},
        {"schemas", no_argument, NULL, 's'},
        {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'u':
            build->user = optarg;
            break;
        case 'p':
            build->python = optarg;
            break;
        case 'n':
            build->node = optarg;
            break;
        case 'r':
            build->runners = optarg;
            break;
        case 'a':
            build->ignores_auth = true;
            break;
        case 's':
            build->prints_schemas = true;
            break;
        default:
            return false;
        }
    }
    return optind == argc - 1;
}

static volatile sig_atomic_t building;

static void pass_on(int signal)
{
    kill(-(pid_t)building, signal);
}

/* In a session of its own, without root's terminal: a process of the user that
 * has the same one can type commands into it (TIOCSTI). This process stays
 * root's, so that the user cannot use it for that. */
static int build_apart(ctl_build_t *build)
{
    pid_t pid = fork();
    int status;

    if (pid < 0) {
        ctl_error("fork: %s", strerror(errno));
        return 1;
    }
    if (pid == 0) {
        setsid();
        return ctl_build(build);
    }
    building = pid;
    signal(SIGINT, pass_on);
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
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

/* A name as AgentApplication takes it, from that of the folder. */
static const char *make_name(const char *folder, apr_pool_t *pool)
{
    char *name = apr_pstrndup(pool, folder[0] != '\0' ? folder : "application",
                              AGENT_APPLICATION_NAME_MAX);

    for (char *c = name; *c != '\0'; c++) {
        if (!apr_isalnum(*c) && strchr("_-.", *c) == NULL) {
            *c = '-';
        }
    }
    return name;
}

static int build_directory(ctl_build_t *build, const char *argument)
{
    char *directory = realpath(argument, NULL);
    int status;

    if (directory == NULL) {
        ctl_error("%s: %s", argument, strerror(errno));
        return 2;
    }
    build->application.directory = apr_pstrdup(build->pool, directory);
    build->python = make_absolute(build->python, build->pool);
    build->node = make_absolute(build->node, build->pool);
    build->runners = make_absolute(build->runners, build->pool);
    build->application.name = make_name(
        strrchr(build->application.directory, '/') + 1, build->pool);
    build->application.ignores_auth = build->ignores_auth;
    if (build->runners == NULL) {
        build->runners = find_runners(build->pool);
    }
    status = geteuid() == 0 ? build_apart(build) : ctl_build(build);
    free(directory);
    return status;
}

/* Programs that are executed must not inherit the caller's descriptors, such as
 * a log, a lock or a socket. */
static void close_inherited(void)
{
    if (close_range(STDERR_FILENO + 1, UINT_MAX, 0) != 0) {
        for (int fd = STDERR_FILENO + 1; fd < sysconf(_SC_OPEN_MAX); fd++) {
            close(fd);
        }
    }
}

int main(int argc, char **argv)
{
    ctl_build_t build = {0};
    int status = 2;

    close_inherited();
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    apr_app_initialize(&argc, (const char *const **)(void *)&argv, NULL);
    apr_pool_create(&build.pool, NULL);
    if (argc < 2 || strcmp(argv[1], "build") != 0
        || !read_options(&build, argc - 1, argv + 1)) {
        fputs(usage, stderr);
    }
    else {
        status = build_directory(&build, argv[argc - 1]);
    }
    apr_pool_destroy(build.pool);
    apr_terminate();
    return status;
}
