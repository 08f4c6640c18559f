/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of applications; see application_pools.h. */
#include "application_pools.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include <apr_file_info.h>
#include <apr_strings.h>

#include "config/runner_settings.h"
#include "core/json.h"
#include "supervisor/process/access.h"

/* ---- programs ---- */

/* The programs of a language. The runner is in the folder `runners`, in the
 * directory of agent-runner. */
typedef struct language_t {
    const char *directive;
    const char *program;
    const char *runner;
    /* A program of the application itself, which takes precedence. */
    const char *own_program;
} language_t;

static const language_t python = {"AgentPythonProgram", "python3", "python",
                                  "/" AGENT_APPLICATION_PYTHON};
/* own_program: `agentctl build` installs it if no other is new enough. */
static const language_t node = {"AgentNodeProgram", "node", "node/main.mjs",
                                "/" AGENT_APPLICATION_NODE};

static bool exists(const char *path, apr_pool_t *pool)
{
    apr_finfo_t info;

    /* A dangling link counts as a program: it is an error, not a reason to use
     * another program. */
    return apr_stat(&info, path, APR_FINFO_TYPE | APR_FINFO_LINK, pool)
        == APR_SUCCESS;
}

/* Searches the PATH of runners; NULL if the program is not there. */
static const char *search(const char *name, apr_pool_t *pool)
{
    static const char *const folders[] = {"/usr/local/bin/", "/usr/bin/",
                                          "/bin/", NULL};

    /* Bounded: three folders. */
    for (const char *const *folder = folders; *folder != NULL; folder++) {
        const char *path = apr_pstrcat(pool, *folder, name, NULL);

        if (exists(path, pool)) {
            return path;
        }
    }
    return NULL;
}

static const char *named_program(const language_t *language,
                                 const agent_runner_settings_t *settings)
{
    return language == &node ? settings->node : settings->python;
}

static const char *find_program(const language_t *language,
                                const agent_runner_settings_t *settings,
                                const char *directory, apr_pool_t *pool)
{
    const char *own = apr_pstrcat(pool, directory, language->own_program, NULL);
    const char *named = named_program(language, settings);

    if (exists(own, pool)) {
        return own;
    }
    return named != NULL ? named : search(language->program, pool);
}

static const language_t *language_of(const agent_graph_pool_t *key)
{
    return key->application->is_node ? &node : &python;
}

/* The file or folder that the program of the language executes. */
static const char *find_runner(const language_t *language,
                               const agent_server_config_t *config,
                               apr_pool_t *pool)
{
    const char *beside = agent_config_runner(config);

    return apr_pstrcat(pool, ap_make_dirstr_parent(pool, beside), "runners/",
                       language->runner, NULL);
}

/* ---- the environment ---- */

/* The home of the pool's user if it owns one, as service users often do not;
 * else the application's directory. */
static const char *find_home(uid_t uid, const char *directory)
{
    uid_t owner = uid != (uid_t)-1 ? uid : geteuid();
    const struct passwd *user = getpwuid(owner);
    struct stat info;

    return user != NULL && user->pw_dir[0] == '/'
            && stat(user->pw_dir, &info) == 0 && S_ISDIR(info.st_mode)
            && info.st_uid == owner
        ? user->pw_dir
        : directory;
}

static const char *const *make_environment(uid_t uid, const char *directory,
                                           apr_pool_t *pool)
{
    const char **list = apr_pcalloc(pool, 2 * sizeof(*list));

    list[0] = apr_pstrcat(pool, "HOME=", find_home(uid, directory), NULL);
    return list;
}

/* ---- the pool ---- */

static const char *print_application(const agent_application_t *application,
                                     apr_pool_t *pool)
{
    return apr_pstrcat(
        pool, "{\"name\":", agent_json_quote(application->name, pool),
        ",\"directory\":", agent_json_quote(application->directory, pool), "}",
        NULL);
}

const char *agent_application_pools_fill(agent_pool_config_t *runners,
                                         const agent_server_config_t *config,
                                         const agent_graph_pool_t *key,
                                         apr_pool_t *pool)
{
    const agent_application_t *application = key->application;
    agent_runner_settings_t settings = agent_runner_settings_get(config, key);
    const language_t *language = language_of(key);
    const char **arguments = apr_pcalloc(pool, 3 * sizeof(*arguments));

    runners->program = find_program(language, &settings, application->directory,
                                    pool);
    if (runners->program == NULL) {
        return apr_psprintf(pool,
                            "%s: expected the path of a program for "
                            "AgentApplication %s, got none, and %s is not in "
                            "/usr/local/bin, /usr/bin or /bin",
                            language->directive, application->name,
                            language->program);
    }
    arguments[0] = runners->program;
    arguments[1] = find_runner(language, config, pool);
    runners->arguments = arguments;
    runners->name = apr_pstrcat(pool, key->deployment, "/", application->name,
                                NULL);
    runners->directory = application->directory;
    runners->environment = make_environment(runners->uid,
                                            application->directory, pool);
    runners->application = print_application(application, pool);
    return NULL;
}

/* " of AgentNodeProgram" if a directive names the program, else "". */
static const char *print_source(const char *program,
                                const agent_server_config_t *config,
                                const agent_graph_pool_t *key, apr_pool_t *pool)
{
    agent_runner_settings_t settings = agent_runner_settings_get(config, key);
    const language_t *language = language_of(key);
    const char *named = named_program(language, &settings);

    return named != NULL && strcmp(named, program) == 0
        ? apr_pstrcat(pool, " of ", language->directive, NULL)
        : "";
}

const char *agent_application_pools_check(const agent_pool_config_t *runners,
                                          const agent_server_config_t *config,
                                          const agent_graph_pool_t *key,
                                          apr_pool_t *pool)
{
    const agent_access_t paths = {.directory = runners->directory,
                                  .file = "langgraph.json",
                                  .program = runners->program,
                                  .argument = runners->arguments[1]};
    const struct passwd *user = getpwuid(
        runners->uid != (uid_t)-1 ? runners->uid : geteuid());
    const char *failed;
    apr_status_t rv = agent_access_check(&failed, runners->uid, runners->gid,
                                         &paths);
    char reason[120];

    return rv == APR_SUCCESS
        ? NULL
        : apr_psprintf(pool,
                       "AgentApplication %s: expected %s that the user %s may "
                       "use, got '%s'%s (%s)",
                       key->application->name,
                       failed == paths.program        ? "a program"
                           : failed == paths.argument ? "a runner"
                                                      : "a directory and file",
                       user != NULL ? user->pw_name : "of its runners",
                       failed != NULL ? failed : runners->directory,
                       failed != NULL && failed == paths.program
                           ? print_source(failed, config, key, pool)
                           : "",
                       apr_strerror(rv, reason, sizeof(reason)));
}
