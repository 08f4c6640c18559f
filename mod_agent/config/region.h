/* SPDX-License-Identifier: Apache-2.0 */
/* The regions of the service: the server's own, and the addresses of all. */
#ifndef AGENT_CONFIG_REGION_H
#define AGENT_CONFIG_REGION_H

#include <stdbool.h>

#include "config.h"

/* AgentRegionURL: the addresses of a region, without / at the end. */
typedef struct agent_region_t {
    const char *name;
    const char *web;
    const char *api;
    /* NULL: none. */
    const char *beacon;
} agent_region_t;

/* Returns AgentRegion, borrowed. */
const char *agent_region_own(const agent_server_config_t *config);

/* Returns the region of that name; NULL: no AgentRegionURL has it. */
const agent_region_t *agent_region_find(const agent_server_config_t *config,
                                        const char *name);

/* Returns the region's addresses as members of a JSON object, each after a
 * comma: api_url and beacon_url, web_url first if with_web; in pool. Without a
 * beacon it has no beacon_url; region NULL: "". */
const char *agent_region_print_urls(const agent_region_t *region, bool with_web,
                                    apr_pool_t *pool);

/* Returns AgentWrongRegion: 403, 421 or 307. */
int agent_region_wrong_status(const agent_server_config_t *config);

/* Whether the server refuses keys of other regions on all virtual hosts and
 * paths, also those of other handlers. True with AgentRegion, AgentRegionURL or
 * a platform host. */
bool agent_region_is_guarded(const agent_server_config_t *config);

/* The directives; see directives.h. */
const char *agent_region_set(cmd_parms *cmd, void *dir, const char *arg);
const char *agent_region_set_urls(cmd_parms *cmd, void *dir, int argc,
                                  char *const argv[]);
const char *agent_region_set_wrong(cmd_parms *cmd, void *dir, const char *arg);

/* Environment variable of a request with a key of another region: the name of
 * that region. */
#define AGENT_WRONG_REGION_VARIABLE "agent_wrong_region"

/* Warns of AgentRegionURLs without the server's own region, and of access logs
 * that do not skip requests with keys of other regions. */
void agent_region_warn(const agent_server_config_t *config, server_rec *server,
                       apr_pool_t *ptemp);

#endif
