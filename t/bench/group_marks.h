/* SPDX-License-Identifier: Apache-2.0 */
/* The marks of keys at the simulated store. */
#ifndef GROUP_MARKS_H
#define GROUP_MARKS_H

#include <stdint.h>

#define GROUP_BUCKETS   (1U << 20)
#define GROUP_MARKS_MAX 128 /* of a key */

typedef struct group_mark_t {
    int64_t expires;
    uint32_t amount;
    uint64_t tag;
} group_mark_t;

typedef struct group_entry_t {
    struct group_entry_t *next;
    unsigned char key[16];
    uint32_t count;
    uint32_t room;
    group_mark_t *marks; /* the first to expire first */
} group_entry_t;

typedef struct group_marks_t {
    group_entry_t *buckets[GROUP_BUCKETS];
} group_marks_t;

/* Returns the entry of the key, without marks that have expired. */
group_entry_t *group_marks_find(group_marks_t *marks, int64_t now,
                                const unsigned char *key);
void group_marks_add(group_entry_t *entry, int64_t expires, uint32_t amount,
                     uint64_t tag);
int64_t group_marks_sum(const group_entry_t *entry);
/* A lease has ended, of which as many admissions were used; tag 0: none. */
void group_marks_close(group_entry_t *entry, uint64_t tag, uint32_t used);

static inline int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A part of the limit that becomes free. */
typedef struct group_part_t {
    int64_t at;
    int64_t amount;
} group_part_t;

/* Returns how long until `needed` of the marks and of the parts are free; -1:
 * there are fewer. parts has room for GROUP_MARKS_MAX + 1 more. */
int64_t group_marks_wait(const group_entry_t *entry, group_part_t *parts,
                         uint32_t count, int64_t needed, int64_t now);

void group_marks_drop(group_marks_t *marks);
/* Keys with an entry, and their marks. */
void group_marks_size(const group_marks_t *marks, uint64_t *keys,
                      uint64_t *count);

#endif
