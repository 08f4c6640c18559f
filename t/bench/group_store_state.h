/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a simulated partition (group_store.c). */
#ifndef GROUP_STORE_STATE_H
#define GROUP_STORE_STATE_H

#include "group_marks.h"
#include "group_store.h"

#define MEMBERS_MAX 512

enum kind { EMPTY, NEW, ATTESTED, BROUGHT, MOVED, LEFT };

typedef struct record_t {
    unsigned char id[RLR_MESSAGE_ID_BYTES];
    int64_t heartbeat;
    int64_t base;
    int64_t attested;
    int64_t joined;
    enum kind kind;
} record_t;

struct group_store_t {
    uint32_t server;
    int64_t offset_ms;
    int64_t now;
    /* The epoch. */
    bool exists;
    uint32_t made_by;
    char name[RLR_MESSAGE_EPOCH_BYTES + 1];
    int64_t start;
    uint32_t members;
    int64_t share_ms;
    bool complete;
    bool follows; /* hosts with another configuration, which have ended */
    bool old;
    int64_t scan;
    int64_t ready; /* 0: not all members have attested */
    int64_t known;
    uint32_t odd_count;
    uint32_t odd[MEMBERS_MAX];
    record_t odd_records[MEMBERS_MAX];
    record_t records[MEMBERS_MAX];
    group_marks_t marks;
};

#endif
