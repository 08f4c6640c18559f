/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a simulated partition (group_store.c). */
#ifndef GROUP_STORE_STATE_H
#define GROUP_STORE_STATE_H

#include "group_marks.h"
#include "group_store.h"

#define MEMBERS_MAX      512
#define GROUP_CONFIRM_MS ((int64_t)4000) /* D + 2 A */

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
    double rate;
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
    int64_t last; /* when a member was connected last */
    int64_t back; /* until when hosts may be at a former store */
    bool is_continued;
    int64_t continued_last;
    int64_t continued_from;
    int64_t continued_to;
    uint32_t unsettled_count;
    uint32_t unsettled[MEMBERS_MAX];
    record_t odd_records[MEMBERS_MAX];
    record_t records[MEMBERS_MAX];
    group_marks_t marks;
};

/* group_epoch.c: B + K + A + G of the epoch. */
int64_t group_epoch_held(const group_store_t *store);
bool group_epoch_has_no_host(const group_store_t *store,
                             const record_t *record);
/* Whether a number is without a host. */
bool group_epoch_lacks_host(const group_store_t *store);
/* A host is connected. */
void group_epoch_touch(group_store_t *store);
/* Begins another epoch if that of the data has ended; its status if it is one
 * of hosts with another configuration than that of the call. */
rlr_message_status_t group_epoch_take(group_store_t *store,
                                      const rlr_message_call_t *call);

#endif
