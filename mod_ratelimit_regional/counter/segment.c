/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the size and parts of a segment, creates it and attaches to it. */
#include "segment.h"

#include <string.h>

#include "layout.h"
#include "mutex.h"

/* "RLRTABLE", and a number that changes with the layout and its meaning. */
#define SEGMENT_MAGIC  0x454c424154524c52U
#define SEGMENT_LAYOUT 5U

/* Offsets from the segment's start. */
typedef struct layout_t {
    uint64_t rows;
    uint64_t counters;
    uint64_t overflow;
    uint64_t shares;
    uint64_t tags;
    uint64_t slots;
    uint64_t size;
} layout_t;

static layout_t lay_out(uint64_t sets, uint64_t rows)
{
    layout_t layout;

    layout.rows = sizeof(rlr_segment_t) + RLR_LOCKS * sizeof(rlr_lock_t);
    layout.counters = layout.rows + (rows * sizeof(rlr_row_t) + 63) / 64 * 64;
    layout.overflow = layout.counters
        + rows * RLR_STRIPES * sizeof(rlr_counter_t);
    layout.shares = layout.overflow
        + rows * RLR_OVERFLOW_WINDOWS * sizeof(rlr_slot_t);
    layout.tags = layout.shares
        + (sets * RLR_WAYS * sizeof(uint64_t) + 63) / 64 * 64;
    layout.slots = layout.tags + sets * sizeof(rlr_tags_t);
    layout.size = layout.slots + sets * RLR_WAYS * sizeof(rlr_slot_t);
    return layout;
}

static uint32_t count_sets(uint32_t slots)
{
    slots = slots < RLR_TABLE_SLOTS_MIN ? RLR_TABLE_SLOTS_MIN : slots;
    return (slots + RLR_WAYS - 1) / RLR_WAYS;
}

size_t rlr_segment_size(uint32_t slots, uint32_t rows)
{
    uint64_t size;

    if (slots > RLR_TABLE_SLOTS_MAX || rows < 1 || rows > RLR_TABLE_ROWS_MAX) {
        return 0;
    }
    size = lay_out(count_sets(slots), rows).size;
    return size <= SIZE_MAX ? (size_t)size : 0;
}

static bool create_locks(rlr_lock_t *locks)
{
    bool made = true;

    for (uint32_t i = 0; made && i < RLR_LOCKS; i++) {
        made = rlr_mutex_init(&locks[i].mutex);
    }
    return made;
}

rlr_table_status_t rlr_segment_create(
    void *memory, size_t size, uint32_t slots, uint32_t rows,
    const unsigned char secret[RLR_TABLE_SECRET_SIZE])
{
    rlr_segment_t *segment = memory;
    size_t needed = rlr_segment_size(slots, rows);

    if (needed == 0 || (uintptr_t)memory % 64 != 0) {
        return RLR_TABLE_INVALID;
    }
    if (size < needed) {
        return RLR_TABLE_TOO_SMALL;
    }
    if (!create_locks((rlr_lock_t *)(segment + 1))) {
        return RLR_TABLE_LOCK_FAILED;
    }
    segment->rows = rows;
    segment->rows_used = 0;
    segment->generation = 0;
    memcpy(segment->secret, secret, sizeof(segment->secret));
    rlr_header_finish(&segment->header, SEGMENT_MAGIC, SEGMENT_LAYOUT,
                      count_sets(slots), needed);
    return RLR_TABLE_OK;
}

/* The row of that name, a new one if unknown, or segment->rows if there is
 * none. */
static uint32_t find_row(const rlr_table_t *table, const char *name)
{
    rlr_segment_t *segment = table->segment;
    rlr_siphash_t hash = rlr_siphash_compute(segment->secret, name,
                                             strlen(name));
    uint32_t i;

    for (i = 0; i < segment->rows_used; i++) {
        if (memcmp(table->row_parts[i].key, &hash, sizeof(hash)) == 0) {
            return i;
        }
    }
    if (i < segment->rows) {
        memcpy(table->row_parts[i].key, &hash, sizeof(hash));
        segment->rows_used++;
    }
    return i;
}

static bool is_segment(const rlr_segment_t *segment, size_t size)
{
    const rlr_header_t *header = &segment->header;

    return rlr_header_fits(header, SEGMENT_MAGIC, SEGMENT_LAYOUT, size)
        && header->sets >= 2 && header->sets <= RLR_TABLE_SLOTS_MAX / RLR_WAYS
        && segment->rows >= 1 && segment->rows <= RLR_TABLE_ROWS_MAX
        && segment->rows_used <= segment->rows
        && header->size == lay_out(header->sets, segment->rows).size;
}

rlr_table_status_t rlr_segment_attach(rlr_table_t *table, void *memory,
                                      size_t size, const char *const *row_names,
                                      uint32_t count, uint32_t *rows)
{
    unsigned char *base = memory;
    layout_t layout;

    table->segment = memory;
    if (!is_segment(table->segment, size)) {
        return RLR_TABLE_INVALID;
    }
    table->sets = table->segment->header.sets;
    table->rows = table->segment->rows;
    layout = lay_out(table->sets, table->rows);
    table->locks = (rlr_lock_t *)(table->segment + 1);
    table->row_parts = (rlr_row_t *)(base + layout.rows);
    table->counters = (rlr_counter_t *)(base + layout.counters);
    table->overflow = (rlr_slot_t *)(base + layout.overflow);
    table->shares = (_Atomic uint64_t *)(base + layout.shares);
    table->tags = (rlr_tags_t *)(base + layout.tags);
    table->slots = (rlr_slot_t *)(base + layout.slots);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = find_row(table, row_names[i]);
        if (rows[i] == table->rows) {
            return RLR_TABLE_ROWS_FULL;
        }
    }
    table->generation = ++table->segment->generation;
    return RLR_TABLE_OK;
}

const unsigned char *rlr_segment_secret(const rlr_table_t *table)
{
    return table->segment->secret;
}
