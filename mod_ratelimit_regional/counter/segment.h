/* SPDX-License-Identifier: Apache-2.0 */
/* The segment of shared memory: its size, creating it, attaching it. layout.h
 * has its parts. */
#ifndef RLR_SEGMENT_H
#define RLR_SEGMENT_H

#include "table.h"

/* Returns the bytes that a segment needs, 0 if out of range. `slots` is
 * rounded up to a multiple of 8 and to RLR_TABLE_SLOTS_MIN; plan for a load of
 * 0.6. */
size_t rlr_segment_size(uint32_t slots, uint32_t rows);

/*
 * Creates a segment in `size` bytes at `memory`, which must be 64-byte
 * aligned, shared by all processes and zero (a fresh anonymous mapping).
 * `secret` must be random, or rlr_segment_secret() of the segment to carry over
 * from.
 */
rlr_table_status_t rlr_segment_create(
    void *memory, size_t size, uint32_t slots, uint32_t rows,
    const unsigned char secret[RLR_TABLE_SECRET_SIZE]);

/*
 * Attaches a configuration to a segment. row_names[i] is the stable name of a
 * rule in a region: all that makes it the same rule in the next configuration
 * (region, name, key), not its position and not its limit. Its row is stored
 * in rows[i]; a name that the segment knows keeps its row, and so its counters
 * and windows. Equal names get the same row.
 *
 * Call it once per configuration, in the parent, not concurrently; children of
 * an older configuration may continue. Where the limits of two configurations
 * for a key differ, the newer ones apply to both from the key's next request.
 */
rlr_table_status_t rlr_segment_attach(rlr_table_t *table, void *memory,
                                      size_t size, const char *const *row_names,
                                      uint32_t count, uint32_t *rows);

/* Returns the segment's secret, borrowed from it, for rlr_segment_create(). */
const unsigned char *rlr_segment_secret(const rlr_table_t *table);

#endif
