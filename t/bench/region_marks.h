/* SPDX-License-Identifier: Apache-2.0 */
/* The marks of keys at the simulated store. */
#ifndef REGION_MARKS_H
#define REGION_MARKS_H

#include <stdint.h>

#define REGION_BUCKETS   (1U << 20)
#define REGION_MARKS_MAX 128 /* of a key */

typedef struct region_mark_t {
    int64_t expires;
    uint32_t amount;
    uint64_t tag;
} region_mark_t;

typedef struct region_entry_t {
    struct region_entry_t *next;
    unsigned char key[16];
    uint32_t count;
    uint32_t room;
    region_mark_t *marks; /* the first to expire first */
} region_entry_t;

typedef struct region_marks_t {
    region_entry_t *buckets[REGION_BUCKETS];
} region_marks_t;

/* Returns the entry of the key, without marks that have expired. */
region_entry_t *region_marks_find(region_marks_t *marks, int64_t now,
                                  const unsigned char *key);
void region_marks_add(region_entry_t *entry, int64_t expires, uint32_t amount,
                      uint64_t tag);
int64_t region_marks_sum(const region_entry_t *entry);

/* A part of the limit that becomes free. */
typedef struct region_part_t {
    int64_t at;
    int64_t amount;
} region_part_t;

/* Returns how long until `needed` of the marks and of the parts are free; -1:
 * there are fewer. parts has room for REGION_MARKS_MAX + 1 more. */
int64_t region_marks_wait(const region_entry_t *entry, region_part_t *parts,
                          uint32_t count, int64_t needed, int64_t now);

void region_marks_drop(region_marks_t *marks);
/* Keys with an entry, and their marks. */
void region_marks_size(const region_marks_t *marks, uint64_t *keys,
                       uint64_t *count);

#endif
