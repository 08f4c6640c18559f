/* SPDX-License-Identifier: Apache-2.0 */
/* The fake runner's child, and facts that it reports about its own process. */
#ifndef FAKE_PROCESS_H
#define FAKE_PROCESS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

/* Starts a process that does not end by itself; returns its pid. */
static int fork_child(int has_session)
{
    pid_t child = fork();

    if (child == 0 && has_session) {
        setsid();
    }
    if (child == 0) {
        for (;;) {
            pause();
        }
    }
    return (int)child;
}

/* As a daemon, whose parent has ended; with a limit of its own, if it is not 0,
 * as far as it can be lowered. */
static int fork_daemon(int locks)
{
    const struct rlimit limit = {(rlim_t)locks, (rlim_t)locks};
    int pipes[2];
    int daemon = -1;
    pid_t parent;

    if (pipe(pipes) != 0) {
        return -1;
    }
    parent = fork();
    if (parent == 0) {
        if (locks > 0) {
            setrlimit(RLIMIT_LOCKS, &limit);
        }
        daemon = fork_child(1);
        _exit(write(pipes[1], &daemon, sizeof(daemon)) < 0);
    }
    waitpid(parent, NULL, 0);
    if (read(pipes[0], &daemon, sizeof(daemon)) < 0) {
        daemon = -1;
    }
    close(pipes[0]);
    close(pipes[1]);
    return daemon;
}

/* A JSON object: users, limits, descriptors, environment. */
static void describe_process(char *text, size_t size)
{
    struct rlimit core;
    struct rlimit files;
    struct rlimit processes;
    int at;
    DIR *fds = opendir("/proc/self/fd");
    struct dirent *entry;

    getrlimit(RLIMIT_CORE, &core);
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NPROC, &processes);
    at = snprintf(text, size,
                  "{\"pid\":%d,\"uid\":%d,\"gid\":%d,\"groups\":%d,"
                  "\"no_new_privs\":%d,"
                  "\"core\":%d,\"files\":%ld,\"processes\":%ld,"
                  "\"cwd_is_root\":%d,\"fds\":[",
                  (int)getpid(), (int)getuid(), (int)getgid(),
                  getgroups(0, NULL), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
                  (int)core.rlim_cur, (long)files.rlim_max,
                  (long)processes.rlim_max, access("etc", F_OK) == 0);
    while ((entry = readdir(fds)) != NULL) {
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(fds)) {
            at += snprintf(text + at, size - (size_t)at, "%s%s",
                           text[at - 1] == '[' ? "" : ",", entry->d_name);
        }
    }
    closedir(fds);
    at += snprintf(text + at, size - (size_t)at, "],\"env\":[");
    for (int i = 0; environ[i] != NULL; i++) {
        at += snprintf(text + at, size - (size_t)at, "%s\"%.*s\"",
                       i > 0 ? "," : "", (int)strcspn(environ[i], "="),
                       environ[i]);
    }
    snprintf(text + at, size - (size_t)at, "]}");
}

#endif
