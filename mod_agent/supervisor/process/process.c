/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, descriptors, user and identity of processes; see process.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <apr_strings.h>

#define BOOT_ID_LENGTH 36
#define MAX_KEEP       256

void agent_process_reset_signals(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++) {
        /* Fails for SIGKILL and SIGSTOP, which have no handlers. */
        signal(number, SIG_DFL);
    }
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int agent_process_signal_fd(const int *signals)
{
    sigset_t set;

    sigemptyset(&set);
    for (; *signals != 0; signals++) {
        sigaddset(&set, *signals);
    }
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return -1;
    }
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int compare_fds(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void open_null(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        if (fcntl(2, F_GETFD) < 0) {
            dup2(null, 2);
        }
        if (null > 2) {
            close(null);
        }
    }
}

/* Skips the descriptor of the listing, which closedir() closes. */
static bool close_listed(unsigned first, unsigned last)
{
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;

    if (directory == NULL) {
        return false;
    }
    while ((entry = readdir(directory)) != NULL) {
        char *end;
        unsigned long fd = strtoul(entry->d_name, &end, 10);

        if (*end == '\0' && end != entry->d_name && fd >= first && fd <= last
            && fd != (unsigned long)dirfd(directory)) {
            close((int)fd);
        }
    }
    closedir(directory);
    return true;
}

bool agent_process_close_range(unsigned first, unsigned last)
{
    return close_range(first, last, 0) == 0 || close_listed(first, last);
}

bool agent_process_close_fds(const int *keep, int count)
{
    int sorted[MAX_KEEP] = {0};
    int kept = 0;
    unsigned next = 3;
    bool is_done = true;

    for (int i = 0; i < count && kept < MAX_KEEP; i++) {
        if (keep[i] > 2) {
            sorted[kept++] = keep[i];
        }
    }
    qsort(sorted, (size_t)kept, sizeof(sorted[0]), compare_fds);
    for (int i = 0; i < kept; i++) {
        if ((unsigned)sorted[i] > next) {
            is_done &= agent_process_close_range(next, (unsigned)sorted[i] - 1);
        }
        next = (unsigned)sorted[i] + 1;
    }
    is_done &= agent_process_close_range(next, UINT_MAX);
    open_null();
    return is_done;
}

apr_status_t agent_process_become(uid_t uid, gid_t gid)
{
    if (uid == (uid_t)-1) {
        return APR_SUCCESS;
    }
    if (geteuid() != 0 && geteuid() == uid && getegid() == gid) {
        return APR_SUCCESS;
    }
    if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0
        || setresuid(uid, uid, uid) != 0) {
        return APR_FROM_OS_ERROR(errno);
    }
    return APR_SUCCESS;
}

int agent_process_open_as(uid_t uid, gid_t gid, const char *path)
{
    int number;
    int fd;

    if (uid != (uid_t)-1) {
        if (setgroups(0, NULL) != 0) {
            return -1;
        }
        /* Only of this thread, and without CAP_DAC_OVERRIDE while it is not 0.
         */
        setfsgid(gid);
        setfsuid(uid);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    number = errno;
    setfsuid(geteuid());
    setfsgid(getegid());
    errno = number;
    return fd;
}

void agent_process_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}

/* Reads a small file of /proc; the text ends with NUL. */
static ssize_t read_small(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (fd < 0) {
        return -1;
    }
    length = read(fd, out, size - 1);
    close(fd);
    if (length >= 0) {
        out[length] = '\0';
    }
    return length;
}

bool agent_process_boot_id(char out[AGENT_PROCESS_BOOT_SIZE])
{
    char boot[BOOT_ID_LENGTH + 2];
    struct stat space;

    if (read_small("/proc/sys/kernel/random/boot_id", boot, sizeof(boot))
            < BOOT_ID_LENGTH
        || stat("/proc/self/ns/pid", &space) != 0) {
        return false;
    }
    snprintf(out, AGENT_PROCESS_BOOT_SIZE, "%.*s:%llu", BOOT_ID_LENGTH, boot,
             (unsigned long long)space.st_ino);
    return true;
}

/* Fields 3 and 22 of /proc/PID/stat; false when it cannot be read. */
static bool read_stat(pid_t pid, char *state, apr_int64_t *start)
{
    char path[64];
    char text[1024];
    char *at;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    if (read_small(path, text, sizeof(text)) <= 0) {
        return false;
    }
    /* The name in field 2 may contain spaces and brackets. */
    at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ') {
        return false;
    }
    *state = at[2];
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    *start = at != NULL ? apr_strtoi64(at + 1, NULL, 10) : -1;
    return at != NULL;
}

apr_int64_t agent_process_start_time(pid_t pid)
{
    apr_int64_t start;
    char state;

    return read_stat(pid, &state, &start) ? start : -1;
}

apr_int64_t agent_process_resident(pid_t pid)
{
    char path[64];
    char text[128];
    char *pages;

    snprintf(path, sizeof(path), "/proc/%ld/statm", (long)pid);
    if (read_small(path, text, sizeof(text)) <= 0) {
        return -1;
    }
    /* The second field: resident pages. */
    pages = strchr(text, ' ');
    return pages != NULL
        ? apr_strtoi64(pages + 1, NULL, 10) * sysconf(_SC_PAGESIZE)
        : -1;
}

/* RLIMIT_LOCKS limits nothing since Linux 2.4.25, RLIMIT_RSS since 2.4.30. */
void agent_process_set_mark(apr_uint32_t id)
{
    const struct rlimit low = {id, id};
    const struct rlimit high = {APR_UINT32_MAX - id, APR_UINT32_MAX - id};

    setrlimit(RLIMIT_LOCKS, &low);
    setrlimit(RLIMIT_RSS, &high);
}

/* The soft limit of that name in /proc/PID/limits; -1: none. */
static apr_int64_t find_limit(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    char *end;
    apr_int64_t limit;

    if (at == NULL) {
        return -1;
    }
    at += strlen(name);
    limit = apr_strtoi64(at, &end, 10);
    return end != at ? limit : -1;
}

apr_int64_t agent_process_mark(pid_t pid)
{
    char path[64];
    char text[4096];
    apr_int64_t id;

    snprintf(path, sizeof(path), "/proc/%ld/limits", (long)pid);
    if (read_small(path, text, sizeof(text)) <= 0) {
        return -1;
    }
    id = find_limit(text, "\nMax file locks");
    return find_limit(text, "\nMax resident set") == APR_UINT32_MAX - id ? id
                                                                         : -1;
}

/* In a child of this process, which keeps its limits. */
static bool can_mark_with(apr_uint32_t id)
{
    pid_t pid = fork();
    int status = 0;
    pid_t ended;

    if (pid == 0) {
        agent_process_set_mark(id);
        _exit(agent_process_mark(getpid()) == id ? 0 : 1);
    }
    do {
        ended = waitpid(pid, &status, 0);
    } while (ended < 0 && errno == EINTR);
    return pid > 0 && ended == pid && status == 0;
}

/* The least id needs the highest limit of one kind, the largest of the other.
 */
bool agent_process_can_mark(void)
{
    return can_mark_with(1) && can_mark_with(APR_INT32_MAX);
}

bool agent_process_same_boot(const char *one, const char *other)
{
    return strncmp(one, other, BOOT_ID_LENGTH) == 0;
}

bool agent_process_is_gone(const char *own_boot, const char *boot, pid_t pid,
                           apr_int64_t start)
{
    apr_int64_t found;
    char state;

    if (!agent_process_same_boot(own_boot, boot)) {
        return true;
    }
    if (strcmp(own_boot, boot) != 0) {
        /* A container of this host, whose processes cannot be seen here. */
        return false;
    }
    if (kill(pid, 0) != 0 && errno == ESRCH) {
        return true;
    }
    /* A zombie has ended too: it has no descriptors and no children. */
    return read_stat(pid, &state, &found)
        && (found != start || state == 'Z' || state == 'X');
}
