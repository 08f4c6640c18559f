/* SPDX-License-Identifier: Apache-2.0 */
/* The packages of an application in JavaScript; see node.h. */
#include "node.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_file_io.h>
#include <apr_strings.h>

#include "../../core/json.h"
#include "command.h"
#include "node_program.h"
#include "../base/output.h"

#define TSX AGENT_APPLICATION_FOLDER "/tsx"

/* Bytes that are read of package.json, and of a lock file for its format. */
#define PACKAGE_BYTES ((apr_size_t)1024 * 1024)
#define LOCK_BYTES    ((apr_size_t)4096)

#define YARN_LOCK "yarn.lock"

/* Named because in a list of arguments a string that macros join looks like
 * two without a comma between them. */
static const char tsx[] = TSX;

/* A lock file, and the command that installs by it. */
typedef struct manager_t {
    const char *lock;
    const char *const argv[8];
} manager_t;

static const manager_t managers[] = {
    {"package-lock.json", {"npm", "ci", "--no-audit", "--no-fund", NULL}},
    {"pnpm-lock.yaml",
     {"npx", "--yes", "pnpm@10.34.8", "install", "--frozen-lockfile", NULL}},
    {YARN_LOCK,
     {"npx", "--yes", "yarn@1.22.22", "install", "--frozen-lockfile",
      "--non-interactive", NULL}},
    {NULL,
     {"npm", "install", "--no-package-lock", "--no-audit", "--no-fund", NULL}}};

static const manager_t *find_manager(void)
{
    const manager_t *manager = managers;

    while (manager->lock != NULL && access(manager->lock, F_OK) != 0) {
        manager++;
    }
    return manager;
}

/* Returns the beginning of a file, in pool; "" if it cannot be read. */
static const char *read_beginning(const char *name, apr_size_t most,
                                  apr_pool_t *pool)
{
    apr_file_t *file;
    apr_size_t length = 0;
    char *text = apr_palloc(pool, most + 1);

    if (apr_file_open(&file, name, APR_FOPEN_READ, 0, pool) == APR_SUCCESS) {
        apr_file_read_full(file, text, most, &length);
        apr_file_close(file);
    }
    text[length] = '\0';
    return text;
}

/* Whether package.json names yarn 2 or newer as its packageManager. */
static bool names_new_yarn(apr_pool_t *pool)
{
    static const char yarn[] = "yarn@";
    json_object *package = agent_json_own(
        json_tokener_parse(read_beginning("package.json", PACKAGE_BYTES, pool)),
        pool);
    const char *name = agent_json_string(package, "packageManager", "");

    return strncmp(name, yarn, sizeof(yarn) - 1) == 0
        && strtol(name + sizeof(yarn) - 1, NULL, 10) >= 2;
}

/* Whether yarn.lock is of yarn 2 or newer: yarn 1 takes it for an empty one,
 * and would install whatever versions are the newest. */
static bool is_new_lock(apr_pool_t *pool)
{
    static const char mark[] = "__metadata:";
    const char *text = read_beginning(YARN_LOCK, LOCK_BYTES, pool);
    const char *found = strstr(text, mark);

    return found != NULL && (found == text || found[-1] == '\n');
}

/* Returns false, after printing why, for a project of yarn 2 or newer. */
static bool check_yarn(const manager_t *manager, apr_pool_t *pool)
{
    bool is_yarn = manager->lock != NULL
        && strcmp(manager->lock, YARN_LOCK) == 0;
    const char *found = is_yarn && is_new_lock(pool) ? YARN_LOCK " is"
        : (is_yarn || manager->lock == NULL) && names_new_yarn(pool)
        ? "the packageManager of package.json is"
        : NULL;

    if (found != NULL) {
        ctl_error("%s of yarn 2 or newer, and only yarn 1 is supported: add "
                  "the lock file of npm (npm install --package-lock-only) or "
                  "pnpm, or use yarn 1",
                  found);
    }
    return found == NULL;
}

/* The pnpm that is pinned here is used: it would install and execute the one
 * that package.json names as its packageManager, or refuse the project of
 * another program. */
static void keep_pnpm(void)
{
    setenv("npm_config_manage_package_manager_versions", "false", 1);
    setenv("npm_config_package_manager_strict", "false", 1);
}

/* Installs tsx, with which the runner imports TypeScript, by the runner's lock
 * file. */
static bool install_tsx(const ctl_build_t *build)
{
    const char *source = apr_pstrcat(build->pool, build->options.runners,
                                     "/node/", NULL);
    const char *const copy[] = {
        "cp", apr_pstrcat(build->pool, source, "package.json", NULL),
        apr_pstrcat(build->pool, source, "package-lock.json", NULL), tsx, NULL};
    const char *const make[] = {"mkdir", "-p", tsx, NULL};
    /* In that folder: --prefix would move npm's global configuration too, with
     * its registry, its proxy and its certificates. */
    static const char *const install[] = {"npm", "ci", "--no-audit",
                                          "--no-fund", NULL};

    ctl_step("Installing tsx, for TypeScript, in " TSX);
    if (ctl_command_run(make) == 0 && ctl_command_run(copy) == 0
        && ctl_command_run_in(tsx, install) == 0) {
        return true;
    }
    ctl_error("tsx could not be installed");
    return false;
}

/* A package with an insecure version, and the oldest one without that. */
typedef struct insecure_t {
    const char *name;
    int fixed[3];
    const char *effect;
} insecure_t;

/* The runner gives them nothing of the kind, but the application may. */
static const insecure_t insecure[] = {
    {"@langchain/langgraph-checkpoint",
     {1, 1, 5},
     "executes code that is in a state"},
    {"@langchain/core",
     {1, 1, 8},
     "loads variables of the environment that a state names"}};

static bool is_older(const char *version, const int fixed[3])
{
    char *at = (char *)version;

    for (int i = 0; i < 3; i++) {
        long number = strtol(at, &at, 10);

        if (number != fixed[i]) {
            return number < fixed[i];
        }
        at += *at == '.' ? 1 : 0;
    }
    return false;
}

static void warn_of_insecure(apr_pool_t *pool)
{
    /* Bounded: a few packages. */
    for (size_t i = 0; i < sizeof(insecure) / sizeof(insecure[0]); i++) {
        const insecure_t *found = &insecure[i];
        json_object *package = agent_json_own(
            json_tokener_parse(
                read_beginning(apr_pstrcat(pool, "node_modules/", found->name,
                                           "/package.json", NULL),
                               PACKAGE_BYTES, pool)),
            pool);
        const char *version = agent_json_string(package, "version", NULL);

        if (version != NULL && is_older(version, found->fixed)) {
            ctl_warn("%s %s %s: use %d.%d.%d or newer", found->name, version,
                     found->effect, found->fixed[0], found->fixed[1],
                     found->fixed[2]);
        }
    }
}

bool ctl_node_install(ctl_build_t *build)
{
    const manager_t *manager = find_manager();

    if (!check_yarn(manager, build->pool) || !ctl_node_program_choose(build)) {
        return false;
    }
    keep_pnpm();
    if (access("package.json", F_OK) != 0) {
        ctl_error("%s has no package.json", build->application.directory);
        return false;
    }
    if (manager->lock == NULL) {
        ctl_warn("there is no lock file: another build may install other "
                 "versions");
    }
    ctl_step("Installing the packages with %s%s%s", manager->argv[0],
             manager->lock != NULL ? " by " : "",
             manager->lock != NULL ? manager->lock : "");
    if (ctl_command_run(manager->argv) != 0) {
        ctl_error("the packages could not be installed");
        return false;
    }
    warn_of_insecure(build->pool);
    return !build->manifest.has_typescript || install_tsx(build);
}
