/* SPDX-License-Identifier: Apache-2.0 */
/* Directives of locations about what their requests create: how long threads
 * and items are kept, and the headers that runs get. */
#include "directives.h"

#include <strings.h>

#include <apr_strings.h>

#include "../core/header.h"
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

const char *agent_directive_headers(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;
    bool is_none = strcasecmp(arg, "none") == 0;

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
    if (config->headers->nelts == PATTERNS_MAX
        || !agent_header_read_pattern(apr_array_push(config->headers), arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentConfigurableHeaders: expected None, or at "
                            "most %d names of headers, that may end with * and "
                            "begin with !, but not identifiers of a run, "
                            "got '%s'",
                            PATTERNS_MAX, arg);
    }
    return NULL;
}
