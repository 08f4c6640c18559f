/* SPDX-License-Identifier: Apache-2.0 */
/* Sums counters, counts live keys, and validates the segment. */
#include "walk.h"

#include <stddef.h>
#include <string.h>

#include "repair_state.h"
#include "slot.h"

static uint64_t get_tag(const rlr_table_t *table, uint32_t set, uint32_t way)
{
    return atomic_load_explicit(&table->tags[set].tag[way],
                                memory_order_acquire);
}

void rlr_walk_counters(const rlr_table_t *table, uint32_t row,
                       rlr_counters_t *counters)
{
    const rlr_counter_t *lines = &table->counters[(size_t)row * RLR_STRIPES];

    memset(counters, 0, sizeof(*counters));
    for (uint32_t i = 0; row < table->rows && i < RLR_STRIPES; i++) {
        counters->admitted += lines[i].admitted;
        counters->refused += lines[i].refused;
        counters->would_refuse += lines[i].would_refuse;
        counters->overflow += lines[i].overflow;
    }
}

uint32_t rlr_walk_slots(const rlr_table_t *table)
{
    return table->sets * RLR_WAYS;
}

uint32_t rlr_walk_live_keys(const rlr_table_t *table, uint32_t *keys,
                            uint32_t rows, const rlr_clock_t *clock)
{
    uint32_t live = 0;

    memset(keys, 0, rows * sizeof(*keys));
    for (uint32_t set = 0; set < table->sets; set++) {
        for (uint32_t way = 0; way < RLR_WAYS; way++) {
            const rlr_slot_t *slot = rlr_layout_slot(table, set, way);

            if (get_tag(table, set, way) != 0
                && rlr_window_is_live(&slot->window, clock)) {
                live++;
                if (slot->row < rows) {
                    keys[slot->row]++;
                }
            }
        }
    }
    return live;
}

/* Whether the key has another slot, in any of its sets. */
static bool has_duplicate(const rlr_table_t *table, const rlr_table_key_t *key,
                          const rlr_slot_t *slot)
{
    for (int i = 0; i < RLR_CHOICES; i++) {
        for (uint32_t way = 0; way < RLR_WAYS; way++) {
            const rlr_slot_t *other = rlr_layout_slot(table, key->sets[i], way);

            if (other != slot && get_tag(table, key->sets[i], way) == key->tag
                && other->window.owner == key->owner) {
                return true;
            }
        }
    }
    return false;
}

static bool is_own_set(const rlr_table_key_t *key, uint32_t set)
{
    bool is_own = false;

    for (int i = 0; i < RLR_CHOICES; i++) {
        is_own = is_own || key->sets[i] == set;
    }
    return is_own;
}

static const char *validate_slot(const rlr_table_t *table, uint32_t set,
                                 uint32_t way, const rlr_clock_t *clock)
{
    const rlr_slot_t *slot = rlr_layout_slot(table, set, way);
    rlr_table_key_t key = {.tag = get_tag(table, set, way),
                           .owner = slot->window.owner};
    const char *problem = rlr_window_validate(&slot->window, clock);

    if (problem != NULL || key.tag == 0) {
        return problem;
    }
    rlr_table_key_set_sets(&key, table);
    if (!is_own_set(&key, set)) {
        return "a key in a wrong set";
    }
    if (slot->row >= table->segment->rows_used) {
        return "a key of an unknown row";
    }
    return has_duplicate(table, &key, slot) ? "a key with two slots" : NULL;
}

/* A counter may be too high after the death of a process, and only then. */
static const char *validate_shares(const rlr_table_t *table)
{
    uint32_t slots = rlr_walk_slots(table);
    uint64_t held = 0;
    uint64_t counted = 0;

    for (uint32_t i = 0; i < slots; i++) {
        held += table->slots[i].holder != 0;
        counted += (uint32_t)table->shares[i];
        if ((uint32_t)table->shares[i] > slots / RLR_SHARE) {
            return "an address with more than its share";
        }
    }
    return counted < held && !rlr_repair_state_is_pending(table)
        ? "more slots than counted"
        : NULL;
}

const char *rlr_walk_validate(const rlr_table_t *table,
                              const rlr_clock_t *clock)
{
    size_t overflow = (size_t)table->rows * RLR_OVERFLOW_WINDOWS;
    const char *problem;

    if (table->segment->header.sets != table->sets
        || table->segment->rows != table->rows
        || table->segment->rows_used > table->rows) {
        return "the header does not match the view";
    }
    problem = validate_shares(table);
    for (size_t i = 0; problem == NULL && i < overflow; i++) {
        problem = rlr_window_validate(&table->overflow[i].window, clock);
    }
    for (uint32_t set = 0; problem == NULL && set < table->sets; set++) {
        for (uint32_t way = 0; problem == NULL && way < RLR_WAYS; way++) {
            problem = validate_slot(table, set, way, clock);
        }
    }
    return problem;
}
