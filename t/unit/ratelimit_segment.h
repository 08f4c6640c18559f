/* SPDX-License-Identifier: Apache-2.0 */
/* A table in its own memory, for the limiter's tests. */
#ifndef AGENT_T_UNIT_RATELIMIT_SEGMENT_H
#define AGENT_T_UNIT_RATELIMIT_SEGMENT_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../mod_ratelimit_regional/counter/repair.h"
#include "../../mod_ratelimit_regional/counter/segment.h"
#include "../../mod_ratelimit_regional/counter/share.h"
#include "../../mod_ratelimit_regional/counter/walk.h"
#include "ratelimit_sim.h"

/* MAP_PRIVATE for tests that fork to try several continuations. */
#ifndef SEGMENT_SHARING
#define SEGMENT_SHARING MAP_SHARED
#endif

/* The bits of a mutex's word with its owner. */
#define OWNER_MASK 0x3fffffff

/* A view of a segment, its clock, and the rows of the names below. */
typedef struct segment_t {
    rlr_table_t table;
    void *memory;
    size_t size;
    sim_time_t time;
    rlr_clock_t clock;
    uint32_t rows[3];
    uint64_t holder; /* who sends the keys; 0: no holder */
} segment_t;

static const char *const segment_rows[3] = {"us/first/api", "us/second/ip",
                                            "eu/first/api"};

static inline void *segment_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        SEGMENT_SHARING | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED);
    return memory;
}

static inline void segment_make_with(segment_t *segment, uint32_t slots,
                                     const unsigned char *secret)
{
    memset(segment, 0, sizeof(*segment));
    segment->size = rlr_segment_size(slots, 3);
    segment->memory = segment_map(segment->size);
    segment->time.us = 5000000000ULL;
    segment->clock.read = sim_read;
    segment->clock.baton = &segment->time;
    assert_int_equal(
        rlr_segment_create(segment->memory, segment->size, slots, 3, secret),
        RLR_TABLE_OK);
    assert_int_equal(rlr_segment_attach(&segment->table, segment->memory,
                                        segment->size, segment_rows, 3,
                                        segment->rows),
                     RLR_TABLE_OK);
}

static inline void segment_make(segment_t *segment, uint32_t slots,
                                unsigned char seed)
{
    unsigned char secret[RLR_TABLE_SECRET_SIZE] = {seed, 1, 2, 3};

    segment_make_with(segment, slots, secret);
}

static inline void segment_drop(segment_t *segment)
{
    const char *problem = rlr_walk_validate(&segment->table, &segment->clock);

    if (problem != NULL) {
        fail_msg("the table: %s", problem);
    }
    munmap(segment->memory, segment->size);
}

static inline rlr_table_request_t segment_request(const segment_t *segment,
                                                  const uint64_t *key,
                                                  rlr_limit_t limit)
{
    rlr_table_request_t request = {.row = segment->rows[0],
                                   .identity = key,
                                   .identity_length = sizeof(*key),
                                   .limit = limit};

    if (segment->holder != 0) {
        request.holder = &segment->holder;
        request.holder_length = sizeof(segment->holder);
    }

    return request;
}

/* Requests one admission for a key that is a number. */
static inline rlr_table_decision_t segment_admit(segment_t *segment,
                                                 uint64_t key,
                                                 rlr_limit_t limit)
{
    rlr_table_request_t request = segment_request(segment, &key, limit);
    rlr_table_decision_t decision;

    rlr_table_admit(&segment->table, &request, &segment->clock, &decision);
    return decision;
}

static inline rlr_table_decision_t segment_peek(segment_t *segment,
                                                uint64_t key, rlr_limit_t limit)
{
    rlr_table_request_t request = segment_request(segment, &key, limit);
    rlr_table_decision_t decision;

    rlr_table_peek(&segment->table, &request, &segment->clock, &decision);
    return decision;
}

#endif
