/* SPDX-License-Identifier: Apache-2.0 */
/* Parses RateLimitStore... */
#include "directives_store.h"

#include <string.h>
#include <strings.h>

#include <apr_file_io.h>
#include <apr_strings.h>

#include "../private.h"
#include "../rules/duration.h"
#include "../store/tls.h"
#include "config.h"
#include "directive.h"

#define HOSTS_MAX    500
#define PASSWORD_MAX 512

typedef struct time_range_t {
    uint64_t low_ms;
    uint64_t high_ms;
    const char *expected;
} time_range_t;

#define UNIT " (seconds without a unit)"

static const time_range_t timeouts = {1, 1000, "a time from 1ms to 1s" UNIT};
static const time_range_t share_times = {1000, 86400000,
                                         "a time from 1s to 1d" UNIT};

/* The settings; NULL inside of <VirtualHost>. */
static rlr_store_config_t *find_settings(const char **problem, cmd_parms *cmd)
{
    rlr_global_t *global = rlr_config_get(cmd->server)->global;

    *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    if (*problem != NULL) {
        return NULL;
    }
    global->store_directive = cmd->cmd->name;
    return &global->store;
}

/* Parses a time. */
static const char *read_time(uint32_t *ms, const cmd_parms *cmd,
                             const char *arg, const time_range_t *range)
{
    uint64_t value;

    if (!rlr_duration_parse(&value, arg) || value < range->low_ms
        || value > range->high_ms) {
        return rlr_directive_expect(cmd, range->expected, arg);
    }
    *ms = (uint32_t)value;
    return NULL;
}

const char *rlr_directives_store_hosts(cmd_parms *cmd, void *dir,
                                       const char *arg)
{
    const char *problem;
    rlr_store_config_t *settings = find_settings(&problem, cmd);
    int hosts = 0;

    if (settings == NULL) {
        return problem;
    }
    problem = rlr_directive_number(&hosts, cmd, arg, 1, HOSTS_MAX);
    settings->hosts = (uint32_t)hosts;
    return problem;
}

const char *rlr_directives_store_timeout(cmd_parms *cmd, void *dir,
                                         const char *arg)
{
    const char *problem;
    rlr_store_config_t *settings = find_settings(&problem, cmd);

    return settings == NULL
        ? problem
        : read_time(&settings->timeout_ms, cmd, arg, &timeouts);
}

const char *rlr_directives_store_failure(cmd_parms *cmd, void *dir,
                                         const char *arg)
{
    static const char *const words[] = {"local", "closed", "open"};
    const char *problem;
    rlr_store_config_t *settings = find_settings(&problem, cmd);

    if (settings == NULL) {
        return problem;
    }
    for (int i = 0; i < (int)(sizeof(words) / sizeof(words[0])); i++) {
        if (strcasecmp(arg, words[i]) == 0) {
            settings->failure = (rlr_failure_t)i;
            return NULL;
        }
    }
    return rlr_directive_expect(cmd, "local, closed or open", arg);
}

const char *rlr_directives_store_share_time(cmd_parms *cmd, void *dir,
                                            const char *arg)
{
    const char *problem;
    rlr_store_config_t *settings = find_settings(&problem, cmd);

    return settings == NULL
        ? problem
        : read_time(&settings->share_ms, cmd, arg, &share_times);
}

/* ---- Credentials ---- */

static const char *describe(apr_status_t rv, apr_pool_t *pool)
{
    char text[120];

    return apr_pstrdup(pool, apr_strerror(rv, text, sizeof(text)));
}

/* Reads the next line, "" at the end of the file; NULL with *reason. */
static const char *read_line(const char **reason, apr_file_t *file,
                             apr_pool_t *pool)
{
    char line[PASSWORD_MAX + 2];
    apr_status_t rv = apr_file_gets(line, (int)sizeof(line), file);

    if (APR_STATUS_IS_EOF(rv)) {
        return "";
    }
    if (rv != APR_SUCCESS) {
        *reason = describe(rv, pool);
        return NULL;
    }
    line[strcspn(line, "\r\n")] = '\0';
    if (strlen(line) > PASSWORD_MAX) {
        *reason = apr_psprintf(pool, "a line has more than %d characters",
                               PASSWORD_MAX);
        return NULL;
    }
    return apr_pstrdup(pool, line);
}

/* Reads a password and, on a line of its own, a user. Returns NULL, or why they
 * cannot be read. */
static const char *read_credentials(rlr_connection_config_t *config,
                                    const char *path, apr_pool_t *pool)
{
    const char *reason = NULL;
    const char *password;
    const char *user = NULL;
    apr_file_t *file;
    apr_status_t rv = apr_file_open(
        &file, path, APR_FOPEN_READ | APR_FOPEN_BUFFERED, 0, pool);

    if (rv != APR_SUCCESS) {
        return describe(rv, pool);
    }
    password = read_line(&reason, file, pool);
    if (password != NULL) {
        user = read_line(&reason, file, pool);
    }
    apr_file_close(file);
    if (password == NULL || user == NULL) {
        return reason;
    }
    config->password = password;
    config->user = user[0] != '\0' ? user : NULL;
    return password[0] != '\0' ? NULL : "the line is empty";
}

const char *rlr_directives_store_password_file(cmd_parms *cmd, void *dir,
                                               const char *arg)
{
    const char *problem;
    rlr_store_config_t *settings = find_settings(&problem, cmd);
    const char *path = ap_server_root_relative(cmd->pool, arg);

    if (settings == NULL) {
        return problem;
    }
    if (path == NULL) {
        return rlr_directive_expect(cmd, "the path of a file", arg);
    }
    problem = read_credentials(&settings->connection, path, cmd->pool);
    return problem == NULL
        ? NULL
        : apr_psprintf(cmd->pool,
                       "%s: expected a file with a password in its first "
                       "line, got '%s': %s",
                       cmd->cmd->name, path, problem);
}

/* ---- TLS ---- */

/* Where to keep the value of "ca=FILE", of which *value is the start; NULL: it
 * is another one. */
static const char **find_option(rlr_tls_files_t *files, const char *option,
                                const char **value)
{
    const struct {
        const char *name;
        const char **value;
    } options[] = {{"ca=", &files->ca},
                   {"certificate=", &files->certificate},
                   {"key=", &files->key},
                   {"name=", &files->name}};

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        size_t length = strlen(options[i].name);

        if (strncasecmp(option, options[i].name, length) == 0
            && option[length] != '\0') {
            *value = option + length;
            return options[i].value;
        }
    }
    return NULL;
}

static const char *make_tls(cmd_parms *cmd, rlr_store_config_t *settings,
                            const rlr_tls_files_t *files)
{
    const char *problem;

    return rlr_tls_make(&settings->connection.tls, files, &problem, cmd->pool)
            == APR_SUCCESS
        ? NULL
        : apr_pstrcat(cmd->pool, cmd->cmd->name, ": ", problem, NULL);
}

const char *rlr_directives_store(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem;
    rlr_store_config_t *settings = find_settings(&problem, cmd);

    if (settings == NULL) {
        return problem;
    }
    if (rlr_address_parse(&settings->connection.address, arg, &problem,
                          cmd->pool)
        != APR_SUCCESS) {
        return apr_pstrcat(cmd->pool, cmd->cmd->name, ": ", problem, NULL);
    }
    /* RateLimitStoreTLS may be before or after it. */
    if (settings->connection.address.has_tls
        && settings->connection.tls == NULL) {
        const rlr_tls_files_t none = {0};

        return make_tls(cmd, settings, &none);
    }
    return NULL;
}

const char *rlr_directives_store_tls(cmd_parms *cmd, void *dir, int argc,
                                     char *const argv[])
{
    const char *problem;
    rlr_store_config_t *settings = find_settings(&problem, cmd);
    rlr_tls_files_t files = {0};

    if (settings == NULL) {
        return problem;
    }
    for (int i = 0; i < argc; i++) {
        const char *value;
        const char **kept = find_option(&files, argv[i], &value);

        if (kept == NULL) {
            return rlr_directive_expect(
                cmd, "ca=, certificate=, key= or name=", argv[i]);
        }
        *kept = kept == &files.name ? value
                                    : ap_server_root_relative(cmd->pool, value);
    }
    return argc == 0
        ? rlr_directive_expect(cmd, "ca=, certificate=, key= or name=", "")
        : make_tls(cmd, settings, &files);
}
