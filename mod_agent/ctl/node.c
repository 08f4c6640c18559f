/* SPDX-License-Identifier: Apache-2.0 */
/* The packages of an application in JavaScript; see node.h. */
#include "node.h"

#include <unistd.h>

#include <apr_strings.h>

#include "command.h"
#include "node_program.h"
#include "say.h"

#define TSX AGENT_APPLICATION_FOLDER "/tsx"

/* For lists of arguments: a string that macros join looks there like two. */
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
    {"yarn.lock",
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

/* Installs tsx, with which the runner imports TypeScript, by the runner's lock
 * file. */
static bool install_tsx(const ctl_build_t *build)
{
    const char *source = apr_pstrcat(build->pool, build->runners, "/node/",
                                     NULL);
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

bool ctl_node_install(ctl_build_t *build)
{
    const manager_t *manager = find_manager();

    if (!ctl_node_program_choose(build)) {
        return false;
    }
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
    return !build->has_typescript || install_tsx(build);
}
