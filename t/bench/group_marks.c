/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of the marks of keys. */
#include "group_marks.h"

#include <stdlib.h>
#include <string.h>

/* More are joined. */

static group_entry_t **find_bucket(group_marks_t *marks,
                                   const unsigned char *key)
{
    uint64_t hash;

    memcpy(&hash, key, sizeof(hash));
    hash *= 0x9e3779b97f4a7c15U;
    return &marks->buckets[hash >> 44];
}

static void drop_expired(group_entry_t *entry, int64_t now)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < entry->count; i++) {
        if (entry->marks[i].expires > now && entry->marks[i].amount) {
            entry->marks[kept++] = entry->marks[i];
        }
    }
    entry->count = kept;
}

group_entry_t *group_marks_find(group_marks_t *marks, int64_t now,
                                const unsigned char *key)
{
    group_entry_t **at = find_bucket(marks, key);
    group_entry_t *found = NULL;

    while (*at != NULL) {
        group_entry_t *entry = *at;

        drop_expired(entry, now);
        if (memcmp(entry->key, key, sizeof(entry->key)) == 0) {
            found = entry;
        }
        else if (entry->count == 0) {
            *at = entry->next;
            free(entry->marks);
            free(entry);
            continue;
        }
        at = &entry->next;
    }
    if (found == NULL) {
        found = calloc(1, sizeof(*found));
        memcpy(found->key, key, sizeof(found->key));
        *at = found;
    }
    return found;
}

void group_marks_add(group_entry_t *entry, int64_t expires, uint32_t amount,
                     uint64_t tag)
{
    uint32_t at = entry->count;

    if (entry->count == entry->room) {
        entry->room = entry->room * 2 + 1;
        entry->marks = realloc(entry->marks,
                               entry->room * sizeof(*entry->marks));
    }
    while (at > 0 && entry->marks[at - 1].expires > expires) {
        entry->marks[at] = entry->marks[at - 1];
        at--;
    }
    entry->marks[at].expires = expires;
    entry->marks[at].amount = amount;
    entry->marks[at].tag = tag;
    entry->count++;
    if (entry->count > GROUP_MARKS_MAX) {
        entry->marks[1].amount += entry->marks[0].amount;
        entry->marks[1].tag = 0;
        entry->count--;
        memmove(entry->marks, entry->marks + 1,
                entry->count * sizeof(*entry->marks));
    }
}

int64_t group_marks_sum(const group_entry_t *entry)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < entry->count; i++) {
        sum += entry->marks[i].amount;
    }
    return sum;
}

static int compare_parts(const void *a, const void *b)
{
    int64_t left = ((const group_part_t *)a)->at;
    int64_t right = ((const group_part_t *)b)->at;

    return (left > right) - (left < right);
}

int64_t group_marks_wait(const group_entry_t *entry, group_part_t *parts,
                         uint32_t count, int64_t needed, int64_t now)
{
    if (needed <= 0) {
        return 0;
    }
    for (uint32_t i = 0; i < entry->count; i++) {
        parts[count++] = (group_part_t){entry->marks[i].expires,
                                        entry->marks[i].amount};
    }
    qsort(parts, count, sizeof(*parts), compare_parts);
    for (uint32_t i = 0; i < count; i++) {
        needed -= parts[i].amount;
        if (needed <= 0) {
            return parts[i].at - now;
        }
    }
    return -1;
}

void group_marks_close(group_entry_t *entry, uint64_t tag, uint32_t used)
{
    for (uint32_t i = 0; tag != 0 && i < entry->count; i++) {
        if (entry->marks[i].tag == tag && entry->marks[i].amount > used) {
            entry->marks[i].amount = used;
        }
    }
}

void group_marks_drop(group_marks_t *marks)
{
    for (uint32_t i = 0; i < GROUP_BUCKETS; i++) {
        while (marks->buckets[i] != NULL) {
            group_entry_t *entry = marks->buckets[i];

            marks->buckets[i] = entry->next;
            free(entry->marks);
            free(entry);
        }
    }
}

void group_marks_size(const group_marks_t *marks, uint64_t *keys,
                      uint64_t *count)
{
    *keys = 0;
    *count = 0;
    for (uint32_t i = 0; i < GROUP_BUCKETS; i++) {
        for (const group_entry_t *entry = marks->buckets[i]; entry != NULL;
             entry = entry->next) {
            *keys += 1;
            *count += entry->count;
        }
    }
}
