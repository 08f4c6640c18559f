/* SPDX-License-Identifier: Apache-2.0 */
/* Directives of locations about what their requests create: how long threads
 * and items are kept, and the headers that runs get. */
#include "directives.h"

#include <strings.h>

#include <apr_strings.h>

#include "../core/header.h"
#include "../private.h"
#include "config.h"
#include "value.h"

/* Of one location: each header of a request is compared with all. */
#define PATTERNS_MAX 64

/* Up to ten years, as the API. */
static const agent_duration_range_t ttl_range = {1, 5256000, "min", false,
                                                 true};

const char *agent_directive_thread_ttl(cmd_parms *cmd, void *dir,
                                       const char *arg)
{
    agent_dir_config_t *config = dir;

    return agent_value_duration(&config->thread_ttl, cmd, arg, &ttl_range);
}

const char *agent_directive_store_ttl(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    agent_dir_config_t *config = dir;

    return agent_value_duration(&config->runner.store_ttl, cmd, arg,
                                &ttl_range);
}

/* Returns an error message if the last pattern, or one before it, can never
 * select a header. */
static const char *check_patterns(const apr_array_header_t *patterns,
                                  const char *arg, cmd_parms *cmd)
{
    const agent_header_pattern_t *all = (const agent_header_pattern_t *)
                                            patterns->elts;
    const agent_header_pattern_t *last = &all[patterns->nelts - 1];

    if (last == all && last->is_excluded) {
        return apr_psprintf(cmd->pool,
                            "AgentConfigurableHeaders: expected a name before "
                            "those that ! leaves out, got '%s' first",
                            arg);
    }
    /* Bounded: PATTERNS_MAX, and the first message is returned. */
    for (const agent_header_pattern_t *one = all; one < last; one++) {
        const agent_header_pattern_t *lost = last->is_excluded ? one : last;
        const agent_header_pattern_t *by = last->is_excluded ? last : one;

        if (agent_header_is_hidden(lost, by)) {
            return apr_psprintf(cmd->pool,
                                "AgentConfigurableHeaders: expected names that "
                                "! does not leave out again, got '%s' beside "
                                "'!%s'",
                                lost->name, by->name);
        }
    }
    return NULL;
}

static void warn_of_credential(const char *arg, cmd_parms *cmd)
{
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, cmd->server,
                 AGENT_LOGNO(0449) "AgentConfigurableHeaders: expected no "
                                   "header with credentials, got '%s' at "
                                   "%s:%d: it is stored with each run, and the "
                                   "API shows it",
                 arg, cmd->directive->filename, cmd->directive->line_num);
}

const char *agent_directive_headers(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;
    bool is_none = strcasecmp(arg, "none") == 0;
    agent_header_pattern_t *pattern;

    if (config->headers == NULL) {
        config->headers = apr_array_make(cmd->pool, 4,
                                         sizeof(agent_header_pattern_t));
    }
    else if (is_none || apr_is_empty_array(config->headers)) {
        return apr_psprintf(cmd->pool,
                            "AgentConfigurableHeaders: expected None alone, "
                            "got '%s' beside another value",
                            arg);
    }
    if (is_none) {
        return NULL;
    }
    pattern = config->headers->nelts < PATTERNS_MAX
        ? apr_array_push(config->headers)
        : NULL;
    if (pattern == NULL || !agent_header_read_pattern(pattern, arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentConfigurableHeaders: expected None, or at "
                            "most %d names of headers, that may end with * and "
                            "begin with !, but not identifiers of a run, "
                            "got '%s'",
                            PATTERNS_MAX, arg);
    }
    if (agent_header_is_credential(pattern)) {
        warn_of_credential(arg, cmd);
    }
    return check_patterns(config->headers, arg, cmd);
}
