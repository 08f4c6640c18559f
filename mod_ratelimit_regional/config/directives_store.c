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
    return NULL;
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

/* Reads the first line; NULL: there is none. */
static const char *read_line(const char *path, apr_pool_t *pool)
{
    char line[PASSWORD_MAX + 2];
    apr_file_t *file;
    apr_status_t rv = apr_file_open(&file, path, APR_FOPEN_READ, 0, pool);

    if (rv != APR_SUCCESS) {
        return NULL;
    }
    rv = apr_file_gets(line, (int)sizeof(line), file);
    apr_file_close(file);
    line[rv == APR_SUCCESS ? strcspn(line, "\r\n") : 0] = '\0';
    return line[0] == '\0' || strlen(line) > PASSWORD_MAX
        ? NULL
        : apr_pstrdup(pool, line);
}

const char *rlr_directive_store_password_file(cmd_parms *cmd, void *dir,
                                              const char *arg)
{
    const char *problem;
    rlr_region_config_t *settings = find_settings(&problem, cmd);

    if (settings == NULL) {
        return problem;
    }
    settings->connection.password = read_line(
        ap_server_root_relative(cmd->pool, arg), cmd->pool);
    return settings->connection.password != NULL
        ? NULL
        : expect(cmd, "a file with a password in its first line", arg);
}
