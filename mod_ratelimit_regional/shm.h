/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the shared memory: made at the first start, kept by the parent
 * process over graceful and ordinary restarts, so that counters go on; gone
 * with the parent. Anonymous: no other httpd can see it.
 */
#ifndef RLR_SEGMENT_H
#define RLR_SEGMENT_H

#include <httpd.h>

#include "counter/table.h"

/*
 * Opens the segment for this configuration, in pool: makes it, or goes on with
 * the one from before the restart, or moves what that one holds to one of
 * another size. names are those of all rows; slots[i] is set for names[i].
 * Call it in the parent, once per configuration. Anything but APR_SUCCESS has
 * been logged; *table is then not usable.
 */
apr_status_t rlr_segment_open(const rlr_table_t **table, uint32_t *slots,
                              const apr_array_header_t *names,
                              uint32_t table_slots, server_rec *server,
                              apr_pool_t *pool);

#endif
