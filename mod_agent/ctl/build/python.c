/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual environment of an application in Python; see python.h. */
#include "python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../../core/json.h"
#include "command.h"
#include "manifest.h"
#include "../base/output.h"
#include "user.h"

#define VENV      AGENT_APPLICATION_FOLDER "/venv"
#define PROBE_SEC 60
/* The runner refuses older ones too: runners/python/__main__.py. */
#define OLDEST 311

const char ctl_python_program[] = AGENT_APPLICATION_PYTHON;
/* Named because in a list of arguments a string that macros join looks like
 * two without a comma between them. */
static const char venv[] = VENV;

/* ---- the interpreter ---- */

/* Returns 311 for Python 3.11; 0: it cannot be executed. */
static int read_version(const char *python, apr_pool_t *pool)
{
    const char *const argv[] = {
        python, "-c",
        "import sys; print(sys.version_info[0] * 100 + sys.version_info[1])",
        NULL};
    char *text;

    return ctl_command_read(&text, argv, PROBE_SEC, true, pool) == 0
        ? (int)strtol(text, NULL, 10)
        : 0;
}

/* `python_version` as 311; 0: none. */
static int wanted_version(const ctl_build_t *build)
{
    const char *text = ctl_manifest_text(&build->manifest, "python_version");
    char *end;
    long major = text != NULL ? strtol(text, &end, 10) : 0;

    return major == 3 && *end == '.' ? (int)(300 + strtol(end + 1, NULL, 10))
                                     : 0;
}

/* The version that is needed, if `python_version` is older than the runner's
 * oldest one too. */
static int least_version(int wanted)
{
    return wanted > OLDEST ? wanted : OLDEST;
}

/* The interpreter of that version, else any; one that is too old is not looked
 * for. */
static const char *find_python(const ctl_build_t *build, int wanted)
{
    const char *exact = apr_psprintf(build->pool, "python3.%d", wanted - 300);

    if (build->options.python != NULL) {
        return build->options.python;
    }
    return wanted >= OLDEST && ctl_command_find(exact, build->pool) != NULL
        ? exact
        : "python3";
}

/* remedy: for a Python that is too old. */
static bool check_version(const char *python, int wanted, int found,
                          const char *remedy)
{
    int oldest = least_version(wanted);

    if (found == 0) {
        ctl_error("%s could not be executed: install Python, or give --python",
                  python);
        return false;
    }
    if (found < oldest) {
        ctl_error("%s is Python 3.%d, and 3.%d is needed: %s", python,
                  found - 300, oldest - 300, remedy);
        return false;
    }
    if (wanted > 0 && found != wanted) {
        ctl_warn("langgraph.json has python_version 3.%d; this is 3.%d",
                 wanted - 300, found - 300);
    }
    return true;
}

/* ---- the virtual environment ---- */

static bool make_with_uv(const ctl_build_t *build, int wanted)
{
    const char *python = build->options.python != NULL
        ? build->options.python
        : apr_psprintf(build->pool, "%s3.%d", wanted >= OLDEST ? "" : ">=",
                       least_version(wanted) - 300);
    const char *const argv[] = {"uv", "venv", "-q", "--allow-existing",
                                "-p", python, venv, NULL};

    ctl_step("Creating " VENV " with uv");
    return ctl_command_run(argv) == 0
        && check_version(ctl_python_program, wanted,
                         read_version(ctl_python_program, build->pool),
                         "give another --python, or none");
}

static bool make_with_python(const ctl_build_t *build, int wanted)
{
    const char *python = find_python(build, wanted);
    int found = read_version(python, build->pool);
    const char *const argv[] = {python, "-m", "venv", venv, NULL};

    if (!check_version(python, wanted, found,
                       apr_psprintf(build->pool,
                                    "give --python, or install uv in %s, "
                                    "which finds or downloads it",
                                    ctl_user_path(build->pool)))) {
        return false;
    }
    ctl_step("Creating " VENV " with Python 3.%d", found - 300);
    return ctl_command_run(argv) == 0;
}

/* Returns the version of the existing environment; 0: it cannot be used. An
 * environment of uv has no pip. */
static int find_usable(bool with_uv, apr_pool_t *pool)
{
    static const char *const argv[] = {ctl_python_program, "-m", "pip",
                                       "--version", NULL};
    int found = read_version(ctl_python_program, pool);
    char *text;

    return found > 0
            && (with_uv
                || ctl_command_read(&text, argv, PROBE_SEC, true, pool) == 0)
        ? found
        : 0;
}

static bool make_venv(const ctl_build_t *build, bool with_uv)
{
    int wanted = wanted_version(build);
    int found = build->options.python == NULL
        ? find_usable(with_uv, build->pool)
        : 0;

    if (found > 0) {
        return check_version(ctl_python_program, wanted, found,
                             "remove " VENV ", and build again");
    }
    return with_uv ? make_with_uv(build, wanted)
                   : make_with_python(build, wanted);
}

/* ---- dependencies ---- */

static bool has_file(const char *folder, const char *name, apr_pool_t *pool)
{
    return access(apr_pstrcat(pool, folder, "/", name, NULL), F_OK) == 0;
}

static const char copy_script[] =
    "import shutil, sys; shutil.rmtree(sys.argv[2], ignore_errors=True); "
    "shutil.copytree(sys.argv[1], sys.argv[2], symlinks=True, "
    "ignore=shutil.ignore_patterns('" AGENT_APPLICATION_FOLDER
    "', '.venv', '.git', 'node_modules', "
    "'__pycache__'))";

/* Building a package writes to its folder. Returns the folder of a copy; NULL,
 * after printing why, if there is none. */
static const char *copy_folder(const char *folder, int number, apr_pool_t *pool)
{
    const char *copy = apr_psprintf(pool, AGENT_APPLICATION_FOLDER "/source/%d",
                                    number);
    const char *const argv[] = {
        ctl_python_program, "-c", copy_script, folder, copy, NULL};

    if (ctl_command_run(argv) == 0) {
        ctl_step("%s is installed from a copy: build again after each change "
                 "of it",
                 folder);
        return apr_pstrcat(pool, "./", copy, NULL);
    }
    ctl_error("%s could not be copied", folder);
    return NULL;
}

/* A folder is installed if it is a package: as it is, so that changes to it
 * need no new build, if the user may write to it. Of others the runner adds the
 * path. */
static bool add_folder(apr_array_header_t *argv, const char *folder,
                       apr_pool_t *pool)
{
    bool is_package = has_file(folder, "pyproject.toml", pool)
        || has_file(folder, "setup.py", pool);

    if (access(folder, F_OK) != 0) {
        ctl_error("langgraph.json: %s: %s", folder, strerror(errno));
        return false;
    }
    if (is_package && access(folder, W_OK) == 0) {
        APR_ARRAY_PUSH(argv, const char *) = "-e";
    }
    else if (is_package) {
        folder = copy_folder(folder, argv->nelts, pool);
    }
    else if (has_file(folder, "requirements.txt", pool)) {
        APR_ARRAY_PUSH(argv, const char *) = "-r";
        folder = apr_pstrcat(pool, folder, "/requirements.txt", NULL);
    }
    else {
        return true;
    }
    APR_ARRAY_PUSH(argv, const char *) = folder;
    return folder != NULL;
}

static bool add_dependency(apr_array_header_t *argv, const char *text,
                           apr_pool_t *pool)
{
    if (text[0] == '.' || text[0] == '/') {
        return add_folder(argv, text, pool);
    }
    APR_ARRAY_PUSH(argv, const char *) = text;
    return true;
}

/* Adds the dependencies to the arguments of pip. Returns false, after printing
 * why, if an entry cannot be one. */
static bool add_dependencies(apr_array_header_t *argv, const ctl_build_t *build)
{
    json_object *list = ctl_manifest_get(&build->manifest, "dependencies");

    for (size_t i = 0; list != NULL && i < json_object_array_length(list);
         i++) {
        json_object *value = json_object_array_get_idx(list, i);
        const char *text = json_object_get_string(value);

        if (text[0] == '-' || text[0] == '\0') {
            ctl_error("langgraph.json: expected folders and requirements as "
                      "dependencies, got %s",
                      agent_json_print(value, build->pool));
            return false;
        }
        if (!add_dependency(argv, text, build->pool)) {
            return false;
        }
    }
    return true;
}

/* ---- source ---- */

static const char *source_text(const ctl_build_t *build, const char *name,
                               const char *fallback)
{
    return agent_json_string(ctl_manifest_get(&build->manifest, "source"), name,
                             fallback);
}

/* By the lock file of the project, exactly. */
static bool synchronize(const ctl_build_t *build, const char *root,
                        const char *package)
{
    const char *argv[] = {"uv",        "sync", "-q", "--frozen", "--no-dev",
                          "--project", root,   NULL, NULL,       NULL};

    if (package != NULL) {
        argv[7] = "--package";
        argv[8] = package;
    }
    setenv(
        "UV_PROJECT_ENVIRONMENT",
        apr_pstrcat(build->pool, build->application.directory, "/" VENV, NULL),
        1);
    ctl_step("Installing the project %s by its uv.lock", root);
    if (ctl_command_run(argv) == 0) {
        return true;
    }
    ctl_error("the project %s could not be installed", root);
    return false;
}

static bool refuse_source(const char *expected, const char *got)
{
    ctl_error("langgraph.json: expected %s, got %s", expected, got);
    return false;
}

/* A project of uv: installed by uv with its lock file, else added to argv, as
 * dependencies are. */
static bool install_source(apr_array_header_t *argv, const ctl_build_t *build,
                           bool with_uv)
{
    const char *root = source_text(build, "root", ".");
    const char *package = source_text(build, "package", NULL);

    if (ctl_manifest_get(&build->manifest, "source") == NULL) {
        return true;
    }
    if (strcmp(source_text(build, "kind", ""), "uv") != 0 || root[0] == '-'
        || (package != NULL && package[0] == '-')) {
        return refuse_source(
            "uv as source.kind, a folder as source.root and "
            "a name as source.package",
            agent_json_print(ctl_manifest_get(&build->manifest, "source"),
                             build->pool));
    }
    if (with_uv && has_file(root, "uv.lock", build->pool)) {
        return synchronize(build, root, package);
    }
    if (package != NULL || !has_file(root, "pyproject.toml", build->pool)) {
        return refuse_source("uv in PATH and a uv.lock, or a pyproject.toml "
                             "without source.package, in source.root",
                             root);
    }
    return add_folder(argv, root, build->pool);
}

static bool install(const ctl_build_t *build, bool with_uv)
{
    static const char *const uv[] = {
        "uv", "pip", "install", "-q", "-p", ctl_python_program, NULL};
    static const char *const pip[] = {
        ctl_python_program, "-m", "pip",
        "install",          "-q", "--disable-pip-version-check",
        "--no-input",       NULL};
    apr_array_header_t *argv = apr_array_make(build->pool, 16,
                                              sizeof(const char *));
    int fixed;

    for (const char *const *word = with_uv ? uv : pip; *word != NULL; word++) {
        APR_ARRAY_PUSH(argv, const char *) = *word;
    }
    fixed = argv->nelts;
    if (!install_source(argv, build, with_uv)
        || !add_dependencies(argv, build)) {
        return false;
    }
    if (argv->nelts == fixed) {
        if (ctl_manifest_get(&build->manifest, "source") == NULL) {
            ctl_warn("langgraph.json names no dependencies that could be "
                     "installed");
        }
        return true;
    }
    APR_ARRAY_PUSH(argv, const char *) = NULL;
    ctl_step("Installing the dependencies with %s", with_uv ? "uv" : "pip");
    if (ctl_command_run((const char *const *)argv->elts) != 0) {
        ctl_error("the dependencies could not be installed");
        return false;
    }
    return true;
}

/* Compiles ahead of the first start. Failures are ignored: the user may not
 * write to a folder, and a graph that imports a broken file fails later. */
static void compile(const ctl_build_t *build)
{
    static const char skipped[] = "/(\\" AGENT_APPLICATION_FOLDER
                                  "|\\.venv|venv|node_modules|\\.git)/";
    const char *const argv[] = {
        ctl_python_program, "-m", "compileall", "-q", "-x", skipped, ".", NULL};
    char *text;

    ctl_command_read(&text, argv, 10 * PROBE_SEC, true, build->pool);
}

/* Sets *with_uv: uv installs if it is there, unless pip is named, or
 * configured, which uv does not read. */
static bool choose_installer(bool *with_uv, const ctl_build_t *build)
{
    const char *named = ctl_manifest_text(&build->manifest, "pip_installer");
    const char *config = ctl_manifest_text(&build->manifest, "pip_config_file");
    bool has_uv = ctl_command_find("uv", build->pool) != NULL;
    bool is_uv = named != NULL && strcmp(named, "uv") == 0;
    bool is_pip = named != NULL && strcmp(named, "pip") == 0;

    if (named != NULL && !is_uv && !is_pip && strcmp(named, "auto") != 0) {
        ctl_error("langgraph.json: expected auto, pip or uv as pip_installer, "
                  "got %s",
                  named);
        return false;
    }
    if (is_uv && !has_uv) {
        ctl_warn("langgraph.json: pip_installer: uv is not in %s: pip "
                 "installs",
                 ctl_user_path(build->pool));
    }
    *with_uv = has_uv && !is_pip && (is_uv || config == NULL);
    if (config != NULL && *with_uv) {
        ctl_warn("langgraph.json: pip_config_file has no effect: uv does not "
                 "read it");
    }
    else if (config != NULL) {
        setenv("PIP_CONFIG_FILE", config, 1);
    }
    return true;
}

bool ctl_python_install(const ctl_build_t *build)
{
    bool with_uv;

    if (!choose_installer(&with_uv, build) || !make_venv(build, with_uv)
        || !install(build, with_uv)) {
        return false;
    }
    compile(build);
    return true;
}
