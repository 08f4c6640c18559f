/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of the service that customers put into their firewalls. */
#ifndef AGENT_CONFIG_PUBLISHED_ADDRESS_H
#define AGENT_CONFIG_PUBLISHED_ADDRESS_H

#include "config.h"

/* An address or block as it was written. until: the last day of its use,
 * "2026-12-31"; NULL: not known. */
typedef struct agent_published_address_t {
    const char *text;
    const char *until;
} agent_published_address_t;

/* One of the two lists. */
typedef struct agent_published_address_list_t {
    /* In agent_server_config_t. */
    size_t offset;
} agent_published_address_list_t;

/* AgentIngressAddress: where clients connect to. */
extern const agent_published_address_list_t agent_published_address_ingress;
/* AgentEgressAddress: from where the service connects to others. */
extern const agent_published_address_list_t agent_published_address_egress;

/* Returns the addresses of a list as the elements of a JSON array, in pool. */
const char *agent_published_address_print(
    const agent_server_config_t *config,
    const agent_published_address_list_t *list, apr_pool_t *pool);

/* Returns the last days of the addresses of a list that have one, as the
 * members of a JSON object, in pool. */
const char *agent_published_address_print_ends(
    const agent_server_config_t *config,
    const agent_published_address_list_t *list, apr_pool_t *pool);

/* Logs the addresses whose last day is past, which customers still read. */
void agent_published_address_warn(const agent_server_config_t *config,
                                  server_rec *server, apr_pool_t *pool);

/* AgentAddressSerial. */
int agent_published_address_serial(const agent_server_config_t *config);

#endif
