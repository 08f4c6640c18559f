/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and checks values of directives. */
#include "value.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../core/quantity.h"
#include "../core/uuid.h"

agent_server_config_t *agent_value_server(const char **problem, cmd_parms *cmd)
{
    *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    return *problem == NULL ? agent_config_server(cmd->server) : NULL;
}

const char *agent_value_account(const char **out, cmd_parms *cmd,
                                const char *arg, const char *previous)
{
    static const char prefix[] = "account=";
    char id[AGENT_UUID_SIZE];

    *out = NULL;
    if (arg == NULL) {
        return NULL;
    }
    if (strncmp(arg, prefix, strlen(prefix)) != 0
        || !agent_uuid_parse(id, arg + strlen(prefix))) {
        return apr_psprintf(cmd->pool,
                            "%s: expected account= and the id of an account "
                            "after the %s, got '%s'",
                            cmd->cmd->name, previous, arg);
    }
    *out = apr_pstrdup(cmd->pool, id);
    return NULL;
}

const char *agent_value_number(apr_int64_t *out, cmd_parms *cmd,
                               const char *arg, apr_int64_t low,
                               apr_int64_t high)
{
    char *end;

    *out = apr_strtoi64(arg, &end, 10);
    if (*arg == '\0' || *end != '\0' || *out < low || *out > high) {
        return apr_psprintf(cmd->pool,
                            "%s: expected a whole number from "
                            "%" APR_INT64_T_FMT " to %" APR_INT64_T_FMT
                            ", got '%s'",
                            cmd->cmd->name, low, high, arg);
    }
    return NULL;
}

const char *agent_value_size(apr_int64_t *out, cmd_parms *cmd, const char *arg,
                             const agent_size_range_t *range)
{
    apr_int64_t bytes;

    if (!agent_quantity_read_size(&bytes, arg) || bytes > range->high
        || (bytes < range->low && (bytes > 0 || !range->allows_zero))) {
        return apr_psprintf(cmd->pool,
                            "%s: expected bytes from %s to %s, a number with "
                            "K, M or G, or without a unit%s, got '%s'",
                            cmd->cmd->name, range->low_text, range->high_text,
                            range->allows_zero ? ", or 0" : "", arg);
    }
    *out = bytes;
    return NULL;
}

static const char *print_range(const agent_duration_range_t *range,
                               apr_interval_time_t unit, apr_pool_t *pool)
{
    return apr_psprintf(
        pool, "from %s to %s%s%s",
        agent_quantity_print_duration(range->low * unit, pool),
        agent_quantity_print_duration(range->high * unit, pool),
        range->is_whole ? " in steps of " : "",
        range->is_whole ? agent_quantity_print_duration(unit, pool) : "");
}

const char *agent_value_duration(apr_interval_time_t *out, cmd_parms *cmd,
                                 const char *arg,
                                 const agent_duration_range_t *range)
{
    apr_interval_time_t unit = 0;
    apr_interval_time_t value;

    if (range->allows_off && strcasecmp(arg, "off") == 0) {
        *out = 0;
        return NULL;
    }
    if (!agent_quantity_read_duration(&unit, "1", range->unit)
        || !agent_quantity_read_duration(&value, arg, range->unit)
        || value < range->low * unit || value > range->high * unit
        || (range->is_whole && value % unit != 0)) {
        return apr_psprintf(
            cmd->pool,
            "%s: expected a duration %s, a number with ms (milliseconds), s, "
            "min (minutes), h or d, or without a unit (%s)%s, got '%s'",
            cmd->cmd->name, print_range(range, unit, cmd->temp_pool),
            range->unit, range->allows_off ? ", or Off" : "", arg);
    }
    *out = value;
    return NULL;
}

const char *agent_value_url(cmd_parms *cmd, const char *arg)
{
    if (strncasecmp(arg, "http://", 7) == 0
        || strncasecmp(arg, "https://", 8) == 0) {
        return NULL;
    }
    return apr_psprintf(cmd->pool,
                        "%s: expected a URL with http:// or https://, got '%s'",
                        cmd->cmd->name, arg);
}
