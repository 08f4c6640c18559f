/* SPDX-License-Identifier: Apache-2.0 */
/* Copies windows and counters to a segment of another size. */
#include "carry.h"

#include <stddef.h>
#include <string.h>

#include "slot.h"
#include "walk.h"

/* The row of `table` with the same name as a row of `old`, or table->rows. */
static uint32_t map_row(const rlr_table_t *table, const rlr_table_t *old,
                        uint32_t row)
{
    uint32_t i = 0;

    while (i < table->segment->rows_used
           && memcmp(table->row_parts[i].key, old->row_parts[row].key,
                     sizeof(table->row_parts[i].key))
               != 0) {
        i++;
    }
    return i < table->segment->rows_used ? i : table->rows;
}

/* Adds the admissions of a key that got no slot to its shared counter. */
static bool carry_shared_locked(const rlr_table_t *table,
                                const rlr_table_key_t *shared,
                                rlr_limit_t limit, rlr_window_copy_t *copy,
                                const rlr_time_t *now, const rlr_clock_t *clock)
{
    rlr_slot_t *slot = rlr_slot_find(table, shared);

    rlr_slot_record_shared(table, shared->row, limit.interval_sec, clock);
    if (slot != NULL) {
        rlr_slot_widen_locked(slot, shared->owner, shared->row, limit, copy,
                              clock);
        return true;
    }
    return rlr_slot_claim_locked(table, shared, limit, copy, now) != NULL
        || rlr_slot_widen_overflow(table, shared, limit, copy, clock);
}

/* Adds the admissions of one window to `table`. False: a lock failed. */
static bool carry_copy(const rlr_table_t *table, rlr_table_key_t *key,
                       rlr_limit_t limit, rlr_window_copy_t *copy,
                       const rlr_clock_t *clock)
{
    rlr_table_key_t shared;
    rlr_time_t now;
    bool carried;

    rlr_table_key_set_sets(key, table);
    shared = *key;
    if (key->holder != 0) {
        rlr_slot_make_shared_key(&shared, table, key->row, key->holder);
    }
    if (!rlr_lock_keys(table, key, &shared)) {
        return false;
    }
    clock->read(&now, clock->baton);
    carried = rlr_slot_claim_locked(table, key, limit, copy, &now) != NULL
        || carry_shared_locked(table, &shared, limit, copy, &now, clock);
    rlr_unlock_keys(table, key, &shared);
    return carried;
}

static bool carry_slot(const rlr_table_t *table, const rlr_table_t *old,
                       const uint16_t *rows, uint32_t set, uint32_t way,
                       const rlr_clock_t *clock)
{
    rlr_slot_t *slot = rlr_layout_slot(old, set, way);
    rlr_table_key_t key = {.tag = atomic_load_explicit(&old->tags[set].tag[way],
                                                       memory_order_acquire),
                           .owner = slot->window.owner,
                           .holder = slot->holder};
    uint16_t row = slot->row;
    rlr_window_copy_t copy;

    if (key.tag == 0 || row >= old->segment->rows_used
        || rows[row] >= table->rows) {
        return true;
    }
    rlr_window_repair(&slot->window);
    key.row = rows[row];
    return !rlr_window_copy(&copy, &slot->window, 0, clock) || copy.count == 0
        || carry_copy(table, &key, rlr_window_limit(&slot->window), &copy,
                      clock);
}

static bool carry_set(const rlr_table_t *table, const rlr_table_t *old,
                      const uint16_t *rows, uint32_t set,
                      const rlr_clock_t *clock)
{
    bool carried = true;

    if (!rlr_lock_set(old, set)) {
        return false;
    }
    for (uint32_t way = 0; carried && way < RLR_WAYS; way++) {
        carried = carry_slot(table, old, rows, set, way, clock);
    }
    rlr_unlock_set(old, set);
    return carried;
}

static bool carry_overflow(const rlr_table_t *table, const rlr_table_t *old,
                           uint32_t row, uint32_t old_row,
                           const rlr_clock_t *clock)
{
    bool carried = true;

    for (uint32_t i = 0; carried && i < RLR_OVERFLOW_WINDOWS; i++) {
        rlr_window_t *window = &rlr_layout_overflow_slot(old, old_row, i)
                                    ->window;
        rlr_table_key_t key = {.tag = (uint64_t)i << 60, .row = row};
        rlr_window_copy_t copy;

        if (!rlr_lock_overflow(old, i)) {
            return false;
        }
        rlr_window_repair(window);
        rlr_window_copy(&copy, window, 0, clock);
        rlr_unlock_overflow(old, i);
        carried = copy.count == 0
            || rlr_slot_widen_overflow(table, &key, rlr_window_limit(window),
                                       &copy, clock);
    }
    return carried;
}

static void carry_shared_until(const rlr_table_t *table, const rlr_table_t *old,
                               uint32_t row, uint32_t old_row)
{
    table->row_parts[row].shared_until_ms = old->row_parts[old_row]
                                                .shared_until_ms;
}

static void carry_counters(const rlr_table_t *table, const rlr_table_t *old,
                           uint32_t row, uint32_t old_row)
{
    rlr_counter_t *line = &table->counters[(size_t)row * RLR_STRIPES];
    rlr_counters_t sum;

    rlr_walk_counters(old, old_row, &sum);
    line->admitted += sum.admitted;
    line->refused += sum.refused;
    line->would_refuse += sum.would_refuse;
    line->overflow += sum.overflow;
}

rlr_table_status_t rlr_carry_over(const rlr_table_t *table,
                                  const rlr_table_t *old,
                                  const rlr_clock_t *clock)
{
    uint16_t rows[RLR_TABLE_ROWS_MAX];
    bool carried = true;

    if (memcmp(table->segment->secret, old->segment->secret,
               RLR_TABLE_SECRET_SIZE)
        != 0) {
        return RLR_TABLE_SECRETS_DIFFER;
    }
    for (uint32_t i = 0; carried && i < old->segment->rows_used; i++) {
        rows[i] = (uint16_t)map_row(table, old, i);
        if (rows[i] < table->rows) {
            carried = carry_overflow(table, old, rows[i], i, clock);
            carry_counters(table, old, rows[i], i);
            carry_shared_until(table, old, rows[i], i);
        }
    }
    for (uint32_t set = 0; carried && set < old->sets; set++) {
        carried = carry_set(table, old, rows, set, clock);
    }
    return carried ? RLR_TABLE_OK : RLR_TABLE_LOCK_FAILED;
}
