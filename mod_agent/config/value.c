/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and checks values of directives. */
#include "value.h"

#include <string.h>
#include <strings.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../core/uuid.h"

/* Digits of a duration, and of one in days: no overflow in microseconds. */
#define DURATION_DIGITS 9
#define DAYS_DIGITS     6

agent_server_config_t *agent_value_server(const char **problem, cmd_parms *cmd)
{
    *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    return *problem == NULL ? agent_config_server(cmd->server) : NULL;
}

const char *agent_value_account(const char **out, cmd_parms *cmd,
                                const char *arg, const char *place)
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
                            cmd->cmd->name, place, arg);
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

/* The bytes of a unit: none, or K, M or G in either case; 0 for anything else.
 */
static apr_int64_t read_unit(const char *unit)
{
    static const char units[] = "kmg";
    apr_int64_t bytes = 1;

    if (*unit == '\0') {
        return 1;
    }
    for (const char *known = units; *known != '\0' && unit[1] == '\0';
         known++) {
        bytes *= 1024;
        if (apr_tolower(*unit) == *known) {
            return bytes;
        }
    }
    return 0;
}

const char *agent_value_size(apr_int64_t *out, cmd_parms *cmd, const char *arg,
                             const agent_size_range_t *range)
{
    char *end;
    apr_int64_t value = apr_strtoi64(arg, &end, 10);
    apr_int64_t unit = read_unit(end);

    if (end == arg || unit == 0 || value < 0 || value > range->high / unit
        || (value * unit < range->low && (value > 0 || !range->allows_zero))) {
        return apr_psprintf(cmd->pool,
                            "%s: expected bytes from %s to %s, a number with "
                            "K, M or G, or without a unit%s, got '%s'",
                            cmd->cmd->name, range->low_text, range->high_text,
                            range->allows_zero ? ", or 0" : "", arg);
    }
    *out = value * unit;
    return NULL;
}

static bool is_duration_unit(const char *unit)
{
    static const char *const units[] = {"ms", "s", "min", "h", "d"};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ap_timeout_parameter_parse() ignores text after the unit and knows no days.
 * False: arg is not a duration. */
static bool parse_duration(apr_interval_time_t *out, const char *arg,
                           const char *unit, apr_pool_t *pool)
{
    size_t digits = strspn(arg, "0123456789");

    if (arg[digits] != '\0') {
        unit = arg + digits;
    }
    if (digits == 0 || digits > DURATION_DIGITS || !is_duration_unit(unit)) {
        return false;
    }
    if (*unit == 'd') {
        if (digits > DAYS_DIGITS) {
            return false;
        }
        arg = apr_psprintf(pool, "%" APR_INT64_T_FMT "h", apr_atoi64(arg) * 24);
    }
    return ap_timeout_parameter_parse(arg, out, unit) == APR_SUCCESS;
}

/* In the largest unit of which it is a whole number. */
static const char *print_duration(apr_interval_time_t value, apr_pool_t *pool)
{
    static const struct {
        const char *name;
        apr_interval_time_t length;
    } units[] = {{"d", APR_INT64_C(86400) * APR_USEC_PER_SEC},
                 {"h", APR_INT64_C(3600) * APR_USEC_PER_SEC},
                 {"min", APR_INT64_C(60) * APR_USEC_PER_SEC},
                 {"s", APR_USEC_PER_SEC},
                 {"ms", 1000}};
    size_t i = 0;

    while (units[i].length > 1000 && value % units[i].length != 0) {
        i++;
    }
    return value == 0 ? "0"
                      : apr_psprintf(pool, "%" APR_INT64_T_FMT "%s",
                                     value / units[i].length, units[i].name);
}

static const char *print_range(const agent_duration_range_t *range,
                               apr_interval_time_t unit, apr_pool_t *pool)
{
    return apr_psprintf(pool, "from %s to %s%s%s",
                        print_duration(range->low * unit, pool),
                        print_duration(range->high * unit, pool),
                        range->is_whole ? " in steps of " : "",
                        range->is_whole ? print_duration(unit, pool) : "");
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
    if (!parse_duration(&unit, "1", range->unit, cmd->temp_pool)
        || !parse_duration(&value, arg, range->unit, cmd->temp_pool)
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
