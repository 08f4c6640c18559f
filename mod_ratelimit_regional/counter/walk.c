/* SPDX-License-Identifier: Apache-2.0 */
/* What looks at the whole table: for the operator, for another size, for
 * tests. Nothing here is on the way of a request. */
#include "walk.h"

#include <stddef.h>
#include <string.h>

#include "slot.h"

static uint64_t get_tag(const rlr_table_t *table, uint32_t set, uint32_t way)
{
    return atomic_load_explicit(&table->tags[set].tag[way],
                                memory_order_acquire);
}

void rlr_table_counters(const rlr_table_t *table, uint32_t rule,
                        rlr_counters_t *counters)
{
    const rlr_table_counter_t
        *lines = &table->counters[(size_t)rule * RLR_TABLE_STRIPES];

    memset(counters, 0, sizeof(*counters));
    for (uint32_t i = 0; rule < table->rules && i < RLR_TABLE_STRIPES; i++) {
        counters->allowed += lines[i].allowed;
        counters->refused += lines[i].refused;
        counters->would_refuse += lines[i].would_refuse;
        counters->overflow += lines[i].overflow;
    }
}

uint32_t rlr_table_places(const rlr_table_t *table)
{
    return table->sets * RLR_TABLE_WAYS;
}

uint32_t rlr_table_live_keys(const rlr_table_t *table, uint32_t *keys,
                             uint32_t rules, uint32_t *capacity,
                             const rlr_clock_t *clock)
{
    uint32_t live = 0;

    memset(keys, 0, rules * sizeof(*keys));
    for (uint32_t set = 0; set < table->sets; set++) {
        for (uint32_t way = 0; way < RLR_TABLE_WAYS; way++) {
            const rlr_table_slot_t *slot = rlr_table_slot(table, set, way);

            if (get_tag(table, set, way) != 0
                && rlr_window_is_live(&slot->window, clock)) {
                live++;
                if (slot->rule < rules) {
                    keys[slot->rule]++;
                }
            }
        }
    }
    if (capacity != NULL) {
        *capacity = rlr_table_places(table);
    }
    return live;
}

/* The slot of `table` for the same rule of `old`, or table->rules. */
static uint32_t map_rule(const rlr_table_t *table, const rlr_table_t *old,
                         uint32_t rule)
{
    uint32_t i = 0;

    while (i < table->segment->rules_used
           && memcmp(table->rule_parts[i].key, old->rule_parts[rule].key,
                     sizeof(table->rule_parts[i].key))
               != 0) {
        i++;
    }
    return i < table->segment->rules_used ? i : table->rules;
}

/* Puts what a key held that found no slot into the counter that it shares. */
static bool carry_shared_locked(const rlr_table_t *table,
                                const rlr_table_key_t *shared,
                                rlr_limit_t limit, rlr_window_copy_t *copy,
                                const rlr_time_t *now, const rlr_clock_t *clock)
{
    rlr_table_slot_t *slot = rlr_table_find(table, shared);

    rlr_table_note_shared(table, shared->rule, limit.interval_sec, clock);
    if (slot != NULL) {
        rlr_table_widen_locked(slot, shared->owner, shared->rule, limit, copy,
                               clock);
        return true;
    }
    return rlr_table_claim_locked(table, shared, limit, copy, now) != NULL
        || rlr_table_widen_overflow(table, shared, limit, copy, clock);
}

/* Puts what one window held into `table`. False: a lock failed. */
static bool carry_copy(const rlr_table_t *table, rlr_table_key_t *key,
                       rlr_limit_t limit, rlr_window_copy_t *copy,
                       const rlr_clock_t *clock)
{
    rlr_table_key_t shared;
    rlr_time_t now;
    bool carried;

    rlr_table_key_place(key, table);
    shared = *key;
    if (key->holder != 0) {
        rlr_table_make_shared_key(&shared, table, key->rule, key->holder);
    }
    if (!rlr_table_lock_keys(table, key, &shared)) {
        return false;
    }
    clock->read(&now, clock->baton);
    carried = rlr_table_claim_locked(table, key, limit, copy, &now) != NULL
        || carry_shared_locked(table, &shared, limit, copy, &now, clock);
    rlr_table_unlock_keys(table, key, &shared);
    return carried;
}

static bool carry_slot(const rlr_table_t *table, const rlr_table_t *old,
                       const uint16_t *rules, uint32_t set, uint32_t way,
                       const rlr_clock_t *clock)
{
    rlr_table_slot_t *slot = rlr_table_slot(old, set, way);
    rlr_table_key_t key = {.tag = get_tag(old, set, way),
                           .owner = slot->window.owner,
                           .holder = slot->holder};
    uint16_t rule = slot->rule;
    rlr_window_copy_t copy;

    if (key.tag == 0 || rule >= old->segment->rules_used
        || rules[rule] >= table->rules) {
        return true;
    }
    rlr_window_repair(&slot->window);
    key.rule = rules[rule];
    return !rlr_window_copy(&copy, &slot->window, 0, clock) || copy.count == 0
        || carry_copy(table, &key, rlr_window_limit(&slot->window), &copy,
                      clock);
}

static bool carry_set(const rlr_table_t *table, const rlr_table_t *old,
                      const uint16_t *rules, uint32_t set,
                      const rlr_clock_t *clock)
{
    bool carried = true;

    if (!rlr_table_lock_set(old, set)) {
        return false;
    }
    for (uint32_t way = 0; carried && way < RLR_TABLE_WAYS; way++) {
        carried = carry_slot(table, old, rules, set, way, clock);
    }
    rlr_table_unlock_set(old, set);
    return carried;
}

static bool carry_overflow(const rlr_table_t *table, const rlr_table_t *old,
                           uint32_t rule, uint32_t old_rule,
                           const rlr_clock_t *clock)
{
    bool carried = true;

    for (uint32_t i = 0; carried && i < RLR_TABLE_GROUPS; i++) {
        rlr_window_t *window = &rlr_table_overflow_slot(old, old_rule, i)
                                    ->window;
        rlr_table_key_t key = {.tag = (uint64_t)i << 60, .rule = rule};
        rlr_window_copy_t copy;

        if (!rlr_table_lock_group(old, i)) {
            return false;
        }
        rlr_window_repair(window);
        rlr_window_copy(&copy, window, 0, clock);
        rlr_table_unlock_group(old, i);
        carried = copy.count == 0
            || rlr_table_widen_overflow(table, &key, rlr_window_limit(window),
                                        &copy, clock);
    }
    return carried;
}

static void carry_note(const rlr_table_t *table, const rlr_table_t *old,
                       uint32_t rule, uint32_t old_rule)
{
    table->rule_parts[rule].shared_until_ms = old->rule_parts[old_rule]
                                                  .shared_until_ms;
}

static void carry_counters(const rlr_table_t *table, const rlr_table_t *old,
                           uint32_t rule, uint32_t old_rule)
{
    rlr_table_counter_t
        *line = &table->counters[(size_t)rule * RLR_TABLE_STRIPES];
    rlr_counters_t sum;

    rlr_table_counters(old, old_rule, &sum);
    line->allowed += sum.allowed;
    line->refused += sum.refused;
    line->would_refuse += sum.would_refuse;
    line->overflow += sum.overflow;
}

rlr_table_status_t rlr_table_carry_over(const rlr_table_t *table,
                                        const rlr_table_t *old,
                                        const rlr_clock_t *clock)
{
    uint16_t rules[RLR_TABLE_RULES_MAX];
    bool carried = true;

    if (memcmp(table->segment->secret, old->segment->secret,
               RLR_TABLE_SECRET_SIZE)
        != 0) {
        return RLR_TABLE_SECRETS_DIFFER;
    }
    for (uint32_t i = 0; carried && i < old->segment->rules_used; i++) {
        rules[i] = (uint16_t)map_rule(table, old, i);
        if (rules[i] < table->rules) {
            carried = carry_overflow(table, old, rules[i], i, clock);
            carry_counters(table, old, rules[i], i);
            carry_note(table, old, rules[i], i);
        }
    }
    for (uint32_t set = 0; carried && set < old->sets; set++) {
        carried = carry_set(table, old, rules, set, clock);
    }
    return carried ? RLR_TABLE_OK : RLR_TABLE_LOCK_FAILED;
}

/* Is there another slot of the same key, in any of its sets? */
static bool has_twin(const rlr_table_t *table, const rlr_table_key_t *key,
                     const rlr_table_slot_t *slot)
{
    for (int i = 0; i < RLR_TABLE_CHOICES; i++) {
        for (uint32_t way = 0; way < RLR_TABLE_WAYS; way++) {
            const rlr_table_slot_t *other = rlr_table_slot(table, key->sets[i],
                                                           way);

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

    for (int i = 0; i < RLR_TABLE_CHOICES; i++) {
        is_own = is_own || key->sets[i] == set;
    }
    return is_own;
}

static const char *validate_slot(const rlr_table_t *table, uint32_t set,
                                 uint32_t way, const rlr_clock_t *clock)
{
    const rlr_table_slot_t *slot = rlr_table_slot(table, set, way);
    rlr_table_key_t key = {.tag = get_tag(table, set, way),
                           .owner = slot->window.owner};
    const char *problem = rlr_window_validate(&slot->window, clock);

    if (problem != NULL || key.tag == 0) {
        return problem;
    }
    rlr_table_key_place(&key, table);
    if (!is_own_set(&key, set)) {
        return "a key in a set that is not its own";
    }
    if (slot->rule >= table->segment->rules_used) {
        return "a key of an unknown rule";
    }
    return has_twin(table, &key, slot) ? "a key with two slots" : NULL;
}

/* Counters may be too high where a process died, and only there. */
static const char *validate_shares(const rlr_table_t *table)
{
    uint32_t slots = rlr_table_places(table);
    uint64_t held = 0;
    uint64_t counted = 0;

    for (uint32_t i = 0; i < slots; i++) {
        held += table->slots[i].holder != 0;
        counted += (uint32_t)table->shares[i];
        if ((uint32_t)table->shares[i] > slots / RLR_TABLE_SHARE) {
            return "an address with more than its share";
        }
    }
    return counted < held && !rlr_table_is_damaged(table)
        ? "more slots than are counted"
        : NULL;
}

const char *rlr_table_validate(const rlr_table_t *table,
                               const rlr_clock_t *clock)
{
    size_t overflow = (size_t)table->rules * RLR_TABLE_GROUPS;
    const char *problem;

    if (table->segment->sets != table->sets
        || table->segment->rules != table->rules
        || table->segment->rules_used > table->rules) {
        return "the header does not fit the view";
    }
    problem = validate_shares(table);
    for (size_t i = 0; problem == NULL && i < overflow; i++) {
        problem = rlr_window_validate(&table->overflow[i].window, clock);
    }
    for (uint32_t set = 0; problem == NULL && set < table->sets; set++) {
        for (uint32_t way = 0; problem == NULL && way < RLR_TABLE_WAYS; way++) {
            problem = validate_slot(table, set, way, clock);
        }
    }
    return problem;
}
