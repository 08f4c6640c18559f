/* SPDX-License-Identifier: Apache-2.0 */
/* Parses RateLimitStore... */
#include "directives_store.h"

#include <string.h>
#include <strings.h>

#include <apr_file_io.h>
#include <apr_strings.h>

#include "../private.h"
#include "../rules/duration.h"
#include "config.h"

#define HOSTS_MAX      500
#define TIMEOUT_MAX_MS 1000
#define SHARE_MAX_MS   86400000U
#define PASSWORD_MAX   512

static const char *expect(const cmd_parms *cmd, const char *expected,
                          const char *given)
{
    return apr_psprintf(cmd->pool, "%s: expected %s, got '%s'", cmd->cmd->name,
                        expected, given);
}

/* The settings; NULL inside of <VirtualHost>. */
static rlr_region_config_t *find_settings(const char **problem, cmd_parms *cmd)
{
    *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    return *problem == NULL ? &rlr_config_get(cmd->server)->global->store
                            : NULL;
}

/* Parses a whole number from 1 to high. */
static const char *read_number(uint32_t *out, const cmd_parms *cmd,
                               const char *arg, int high)
{
    char *end;
    apr_int64_t value = apr_strtoi64(arg, &end, 10);

    if (*arg == '\0' || *end != '\0' || value < 1 || value > high) {
        return expect(
            cmd, apr_psprintf(cmd->pool, "a whole number from 1 to %d", high),
            arg);
    }
    *out = (uint32_t)value;
    return NULL;
}

const char *rlr_directive_store_hosts(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    const char *problem;
    rlr_region_config_t *settings = find_settings(&problem, cmd);

    return settings == NULL
        ? problem
        : read_number(&settings->hosts, cmd, arg, HOSTS_MAX);
}

const char *rlr_directive_store_timeout(cmd_parms *cmd, void *dir,
                                        const char *arg)
{
    const char *problem;
    rlr_region_config_t *settings = find_settings(&problem, cmd);
    uint64_t ms;

    if (settings == NULL) {
        return problem;
    }
    if (!rlr_duration_parse(&ms, arg) || ms < 1 || ms > TIMEOUT_MAX_MS) {
        return expect(cmd, "a time from 1ms to 1s", arg);
    }
    settings->timeout_ms = (uint32_t)ms;
    return NULL;
}

const char *rlr_directive_store_failure(cmd_parms *cmd, void *dir,
                                        const char *arg)
{
    static const char *const words[] = {"local", "closed", "open"};
    const char *problem;
    rlr_region_config_t *settings = find_settings(&problem, cmd);

    if (settings == NULL) {
        return problem;
    }
    for (int i = 0; i < (int)(sizeof(words) / sizeof(words[0])); i++) {
        if (strcasecmp(arg, words[i]) == 0) {
            settings->failure = (rlr_failure_t)i;
            return NULL;
        }
    }
    return expect(cmd, "local, closed or open", arg);
}

const char *rlr_directive_store_share_time(cmd_parms *cmd, void *dir,
                                           const char *arg)
{
    const char *problem;
    rlr_region_config_t *settings = find_settings(&problem, cmd);
    uint64_t ms;

    if (settings == NULL) {
        return problem;
    }
    if (!rlr_duration_parse(&ms, arg) || ms < 1000 || ms > SHARE_MAX_MS) {
        return expect(cmd, "a time from 1s to 1d", arg);
    }
    settings->share_ms = ms;
    return NULL;
}

/* ---- Credentials ---- */

/* Reads the next line; NULL: there is none, or it is too long. */
static const char *read_line(apr_file_t *file, apr_pool_t *pool)
{
    char line[PASSWORD_MAX + 2];

    if (apr_file_gets(line, (int)sizeof(line), file) != APR_SUCCESS) {
        return NULL;
    }
    line[strcspn(line, "\r\n")] = '\0';
    return strlen(line) > PASSWORD_MAX ? NULL : apr_pstrdup(pool, line);
}

const char *rlr_directive_store_password_file(cmd_parms *cmd, void *dir,
                                              const char *arg)
{
    const char *problem;
    rlr_region_config_t *settings = find_settings(&problem, cmd);
    const char *password = NULL;
    const char *user = NULL;
    apr_file_t *file;

    if (settings == NULL) {
        return problem;
    }
    if (apr_file_open(&file, ap_server_root_relative(cmd->pool, arg),
                      APR_FOPEN_READ | APR_FOPEN_BUFFERED, 0, cmd->pool)
        == APR_SUCCESS) {
        password = read_line(file, cmd->pool);
        user = read_line(file, cmd->pool);
        apr_file_close(file);
    }
    if (password == NULL || password[0] == '\0') {
        return expect(cmd, "a file with a password in its first line", arg);
    }
    settings->connection.password = password;
    settings->connection.user = user != NULL && user[0] != '\0' ? user : NULL;
    return NULL;
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

static const char *make_tls(cmd_parms *cmd, rlr_region_config_t *settings,
                            const rlr_tls_files_t *files)
{
    const char *problem;

    return rlr_tls_make(&settings->connection.tls, files, &problem, cmd->pool)
            == APR_SUCCESS
        ? NULL
        : apr_pstrcat(cmd->pool, cmd->cmd->name, ": ", problem, NULL);
}

const char *rlr_directive_store(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem;
    rlr_region_config_t *settings = find_settings(&problem, cmd);

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

const char *rlr_directive_store_tls(cmd_parms *cmd, void *dir, int argc,
                                    char *const argv[])
{
    const char *problem;
    rlr_region_config_t *settings = find_settings(&problem, cmd);
    rlr_tls_files_t files = {0};

    if (settings == NULL) {
        return problem;
    }
    for (int i = 0; i < argc; i++) {
        const char *value;
        const char **kept = find_option(&files, argv[i], &value);

        if (kept == NULL) {
            return expect(cmd, "ca=, certificate=, key= or name=", argv[i]);
        }
        *kept = kept == &files.name ? value
                                    : ap_server_root_relative(cmd->pool, value);
    }
    return argc == 0 ? expect(cmd, "ca=, certificate=, key= or name=", "")
                     : make_tls(cmd, settings, &files);
}
