/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory: created at the first start, kept by the parent process
 * over restarts, so that counters continue, and freed with it. Anonymous: no
 * other httpd has access. */
#ifndef RLR_SHM_H
#define RLR_SHM_H

#include <httpd.h>

#include "counter/table.h"
#include "protocol/shared.h"

/*
 * Attaches the segment for this configuration; *table is in pool. Creates the
 * segment, continues with the one from before the restart, or carries that over
 * to one of another size. names has the names of all rows
 * (rlr_vhosts_row_names); rows[i] is set to the row of names[i]. table_slots is
 * the configured number of slots. Call it in the parent, once per
 * configuration. Errors are logged; *table is then not usable.
 */
apr_status_t rlr_shm_open(const rlr_table_t **table, uint32_t *rows,
                          const apr_array_header_t *names, uint32_t table_slots,
                          server_rec *server, apr_pool_t *pool);

/* Attaches the memory of a store, from before the restart if there is one;
 * table_slots is the number of leases at its first start. Call it in the
 * parent, like rlr_shm_open(). */
apr_status_t rlr_shm_open_shared(rlr_shared_t *shared, uint32_t table_slots,
                                 server_rec *server);

#endif
