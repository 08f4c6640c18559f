/* SPDX-License-Identifier: Apache-2.0 */
/* All virtual hosts together: their regions, the rows of the table, the
 * store. */
#ifndef RLR_VHOSTS_H
#define RLR_VHOSTS_H

#include "vhost.h"

/* Rows of each region that belong to no rule. */
#define RLR_VHOSTS_EXTRA_ROWS 4

/* Returns the first virtual host of the region (NULL: of any), or NULL. */
const rlr_vhost_t *rlr_vhosts_find(server_rec *main_server, const char *region);

/* Returns the regions in use, each once, in the order of the servers. */
apr_array_header_t *rlr_vhosts_regions(server_rec *main_server,
                                       apr_pool_t *pool);

/* Returns the name of a rule's row in a region. Counters follow it over
 * restarts, and from host to host. */
const char *rlr_vhosts_name_row(const char *region, const rlr_rule_t *rule,
                                apr_pool_t *pool);

/* Returns the names of all rows of the regions in use, for
 * rlr_segment_attach(). */
apr_array_header_t *rlr_vhosts_row_names(server_rec *main_server,
                                         apr_pool_t *pool);

/* Sets the table of all virtual hosts, and the rows of the names above. */
void rlr_vhosts_set_table(server_rec *main_server, const rlr_table_t *table,
                          const apr_array_header_t *names, const uint32_t *rows,
                          apr_pool_t *pool);

/* Returns the longest interval of all virtual hosts, with overrides. */
uint32_t rlr_vhosts_longest_sec(const server_rec *main_server);

/* Sets the store of all virtual hosts. */
void rlr_vhosts_set_store(server_rec *main_server, const rlr_store_t *store);

#endif
