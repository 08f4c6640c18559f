/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user that builds; see user.h. As root nothing is read of the application
 * but the owner of its folder, and nothing is executed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../base/output.h"

#define DEFAULT_PATH                                                           \
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* ---- whose folder ---- */

/* Overwrites what getpwnam() and getpwuid() returned before. */
const char *ctl_user_name(uid_t id, apr_pool_t *pool)
{
    const struct passwd *user = getpwuid(id);

    return user != NULL ? apr_pstrdup(pool, user->pw_name)
                        : apr_psprintf(pool, "user %ld", (long)id);
}

static const struct passwd *find_user(const ctl_build_t *build,
                                      const struct stat *info)
{
    const struct passwd *user = build->options.user != NULL
        ? getpwnam(build->options.user)
        : getpwuid(info->st_uid);

    if (user == NULL) {
        ctl_error(build->options.user != NULL
                      ? "there is no user %s: create it "
                        "(useradd --system)"
                      : "the owner of %s has no name",
                  build->options.user != NULL ? build->options.user
                                              : build->application.directory);
    }
    else if (user->pw_uid == 0) {
        ctl_error("%s%snothing is installed as root: give --user NAME, the "
                  "user of its runners (AgentRunnerUser)",
                  build->options.user != NULL ? ""
                                              : build->application.directory,
                  build->options.user != NULL ? "" : " belongs to root, and ");
        return NULL;
    }
    return user;
}

/* Whether only the owner writes to the folder. */
static bool is_private(const struct stat *info)
{
    return (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool is_of_root(const struct stat *info)
{
    return info->st_uid == 0 && is_private(info);
}

/* Returns true if only root or the user can rename or replace entries of the
 * directory that belong to these two. */
static bool is_controlled_by(int directory, uid_t user)
{
    struct stat info;

    return fstat(directory, &info) == 0
        && (info.st_uid == 0 || info.st_uid == user)
        && (is_private(&info) || (info.st_mode & S_ISVTX) != 0);
}

/* Returns a descriptor of the directory if every directory above it is
 * controlled by root or the user, and no link is on the way; else -1. */
static int walk(const char *path, uid_t user, apr_pool_t *pool)
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *state;
    const char *name = apr_strtok(apr_pstrdup(pool, path), "/", &state);

    for (; name != NULL && fd >= 0; name = apr_strtok(NULL, "/", &state)) {
        int next = is_controlled_by(fd, user)
            ? openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            : -1;

        close(fd);
        fd = next;
    }
    return fd;
}

/* Returns true if only root and the directory's owner can have chosen it: the
 * owner of a link, or of a directory above it, could lead to another folder. */
static bool is_chosen_by_owner(const ctl_build_t *build,
                               const struct stat *info)
{
    int fd = walk(build->options.argument, info->st_uid, build->pool);
    struct stat walked;
    bool same;

    if (fd < 0) {
        return false;
    }
    same = fstat(fd, &walked) == 0 && walked.st_dev == info->st_dev
        && walked.st_ino == info->st_ino;
    close(fd);
    return same;
}

/* Creates a folder of the user in one of root, in which no other user can
 * replace the new entry. */
static bool make_folder(int folder, const char *name, const struct passwd *user)
{
    int fd;
    bool done;

    if (mkdirat(folder, name, 0755) != 0) {
        return errno == EEXIST;
    }
    fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    done = fd >= 0 && fchown(fd, user->pw_uid, user->pw_gid) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

static bool make_folders(const char *directory, int folder,
                         const struct passwd *user)
{
    bool with_node = faccessat(folder, "package.json", F_OK, 0) == 0;

    if (make_folder(folder, AGENT_APPLICATION_FOLDER, user)
        && (!with_node || make_folder(folder, "node_modules", user))) {
        return true;
    }
    ctl_error("no folder could be created in %s: %s", directory,
              strerror(errno));
    return false;
}

/* As root, without a name: what is in the folder is executed as its owner, so
 * nobody else may have put it there, or have led root there. */
static bool check_owner(const ctl_build_t *build, const struct stat *info,
                        const struct passwd *owner)
{
    if (!is_private(info)) {
        ctl_error("%s belongs to %s, but others can write to it: give --user "
                  "NAME",
                  build->application.directory, owner->pw_name);
        return false;
    }
    if (!is_chosen_by_owner(build, info)) {
        ctl_error("%s belongs to %s, but others may have led to it, by a link "
                  "or a directory above it: give --user NAME",
                  build->application.directory, owner->pw_name);
        return false;
    }
    return true;
}

/* The folder is neither the user's nor root's alone. */
static void refuse_owner(const ctl_build_t *build, const struct stat *info,
                         const struct passwd *user)
{
    const char *directory = build->application.directory;
    const char *name = apr_pstrdup(build->pool, user->pw_name);

    if (info->st_uid == 0) {
        ctl_error("%s belongs to root, but others can write to it: "
                  "chmod go-w %s",
                  directory, directory);
        return;
    }
    ctl_error("%s belongs to %s, neither to %s nor to root alone: build it as "
              "its owner, without --user, or give it to root (chown -R root "
              "%s)",
              directory, ctl_user_name(info->st_uid, build->pool), name,
              directory);
}

/* As root: the folder is the user's, or root's alone. */
static bool prepare_folder(const ctl_build_t *build, const struct stat *info,
                           int folder, const struct passwd *user)
{
    if (info->st_uid == user->pw_uid) {
        return build->options.user != NULL || check_owner(build, info, user);
    }
    if (!is_of_root(info)) {
        refuse_owner(build, info, user);
        return false;
    }
    if (!is_chosen_by_owner(build, info)) {
        ctl_error("%s belongs to root, and so must every directory above it; "
                  "give its path without links",
                  build->application.directory);
        return false;
    }
    return make_folders(build->application.directory, folder, user);
}

/* ---- the environment ---- */

/* Prefixes of variables that tell package managers where to find packages.
 * Their values may have passwords of registries. */
static const char *const package_prefixes[] = {
    "PIP_", "UV_", "npm_config_", "NPM_CONFIG_", "YARN_", NULL};

static bool has_prefix(const char *variable, const char *const *prefixes)
{
    for (const char *const *prefix = prefixes; *prefix != NULL; prefix++) {
        if (strncmp(variable, *prefix, strlen(*prefix)) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the build inherits a variable: where packages are, proxies and
 * certificates, but no credentials for publishing. */
static bool is_inherited(const char *variable)
{
    static const char *const publishing[] = {"UV_PUBLISH_", NULL};
    static const char *const prefixes[] = {"http_proxy=",
                                           "HTTP_PROXY=",
                                           "https_proxy=",
                                           "HTTPS_PROXY=",
                                           "no_proxy=",
                                           "NO_PROXY=",
                                           "all_proxy=",
                                           "ALL_PROXY=",
                                           "SSL_CERT_",
                                           "NODE_EXTRA_CA_CERTS=",
                                           "REQUESTS_CA_BUNDLE=",
                                           "LANG=",
                                           "LC_",
                                           "TZ=",
                                           "PATH=",
                                           NULL};

    return has_prefix(variable, prefixes)
        || (has_prefix(variable, package_prefixes)
            && !has_prefix(variable, publishing));
}

void ctl_user_forget_registries(ctl_build_t *build)
{
    apr_array_header_t *names = apr_array_make(build->pool, 8,
                                               sizeof(const char *));

    for (char **variable = environ; *variable != NULL; variable++) {
        if (has_prefix(*variable, package_prefixes)) {
            APR_ARRAY_PUSH(names, const char *) = apr_pstrmemdup(
                build->pool, *variable, strcspn(*variable, "="));
        }
    }
    for (int i = 0; i < names->nelts; i++) {
        unsetenv(APR_ARRAY_IDX(names, i, const char *));
    }
}

const char *ctl_user_path(apr_pool_t *pool)
{
    const char *path = getenv("PATH");

    return path != NULL && strcmp(path, DEFAULT_PATH) == 0
        ? apr_pstrcat(pool, "PATH (", path, ")", NULL)
        : "PATH";
}

/* HOME, which package managers write to, is that folder for users without a
 * home. */
static void set_environment(const ctl_build_t *build, const struct passwd *user,
                            bool was_root)
{
    apr_array_header_t *kept = apr_array_make(build->pool, 16,
                                              sizeof(const char *));
    const char *own = apr_pstrcat(build->pool, build->application.directory,
                                  "/" AGENT_APPLICATION_FOLDER, NULL);

    for (char **variable = environ; *variable != NULL; variable++) {
        if (is_inherited(*variable)
            && !(was_root && strncmp(*variable, "PATH=", 5) == 0)) {
            APR_ARRAY_PUSH(kept, const char *) = apr_pstrdup(build->pool,
                                                             *variable);
        }
    }
    clearenv();
    /* Copies: libraries read the environment when the pool is gone. */
    for (int i = 0; i < kept->nelts; i++) {
        char *variable = APR_ARRAY_IDX(kept, i, char *);
        char *value = strchr(variable, '=');

        if (value != NULL) {
            *value = '\0';
            setenv(variable, value + 1, 1);
        }
    }
    setenv("PATH", DEFAULT_PATH, 0);
    setenv("npm_config_update_notifier", "false", 0);
    setenv("USER", user->pw_name, 1);
    setenv("LOGNAME", user->pw_name, 1);
    setenv("HOME", access(user->pw_dir, W_OK) == 0 ? user->pw_dir : own, 1);
}

/* ---- the user ---- */

static bool change_user(const struct passwd *user)
{
    if (initgroups(user->pw_name, user->pw_gid) == 0
        && setgid(user->pw_gid) == 0 && setuid(user->pw_uid) == 0) {
        return true;
    }
    ctl_error("cannot become %s: %s", user->pw_name, strerror(errno));
    return false;
}

static bool check_same(const struct passwd *user)
{
    if (user->pw_uid == geteuid()) {
        return true;
    }
    ctl_error("only root can build as %s", user->pw_name);
    return false;
}

static const struct passwd *choose(const ctl_build_t *build,
                                   const struct stat *info)
{
    const struct passwd *user;

    if (geteuid() == 0 || build->options.user != NULL) {
        return find_user(build, info);
    }
    user = getpwuid(geteuid());
    if (user == NULL) {
        ctl_error("the user %ld has no name", (long)geteuid());
    }
    return user;
}

static bool become(const ctl_build_t *build, int folder)
{
    bool was_root = geteuid() == 0;
    const struct passwd *user;
    struct stat info;

    if (fstat(folder, &info) != 0) {
        ctl_error("%s: %s", build->application.directory, strerror(errno));
        return false;
    }
    user = choose(build, &info);
    if (user == NULL
        || !(was_root ? prepare_folder(build, &info, folder, user)
                     && change_user(user)
                      : check_same(user))) {
        return false;
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    umask(022);
    if (fchdir(folder) != 0) {
        ctl_error("%s cannot enter %s: %s", user->pw_name,
                  build->application.directory, strerror(errno));
        return false;
    }
    set_environment(build, user, was_root);
    return true;
}

bool ctl_user_become(const ctl_build_t *build)
{
    int folder = open(build->application.directory,
                      O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool done;

    if (folder < 0) {
        ctl_error("%s: %s", build->application.directory, strerror(errno));
        return false;
    }
    done = become(build, folder);
    close(folder);
    return done;
}
