/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of other regions: their requests must not be served, nor their bodies be
 * read, in this one. */
#ifndef AGENT_AUTH_KEY_REGION_H
#define AGENT_AUTH_KEY_REGION_H

#include "../http/call.h"

/* Registers the hook that refuses them on all paths of a server with regions;
 * called with the module's hooks. */
void agent_key_region_register(void);

/*
 * Refuses a key of another region in either header. Without AgentRegionURL
 * every region but this one counts as known. Asks no database. Error:
 * WRONG_REGION, with the headers of its response set.
 */
apr_status_t agent_key_region_check(request_rec *r,
                                    const agent_server_config_t *config,
                                    agent_error_t **err);

#endif
