/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's lease of one key: admissions that the store has granted and that the
 * host has not used, and the marks that a new store must know. The caller holds
 * the lease's lock. Times are milliseconds of the host's monotonic clock;
 * README.md has the rules.
 */
#ifndef RLR_LEASE_H
#define RLR_LEASE_H

#include "message.h"

#define RLR_LEASE_MARKS 6

typedef enum rlr_lease_result_t {
    RLR_LEASE_ADMITTED,
    RLR_LEASE_REFUSED,
    RLR_LEASE_ASK /* no lease decides: ask the store */
} rlr_lease_result_t;

typedef struct rlr_lease_t {
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    rlr_limit_t limit;
    uint64_t tag;
    uint32_t size;       /* admissions that were granted in advance */
    uint32_t unused;     /* of these, not used yet */
    uint32_t waited;     /* admissions that went to waiting requests */
    uint64_t from_ms;    /* when the call that requested it was sent */
    uint64_t until_ms;   /* when it ends */
    uint64_t closed_tag; /* the previous lease's, not yet reported */
    uint32_t closed_used;
    uint64_t refused_until_ms;   /* when the next admission is expected */
    uint64_t cached_until_ms;    /* until then a refusal needs no call */
    uint64_t requested_until_ms; /* until then no refill is requested */
    uint64_t logged_until_ms;    /* until then no refusal is logged */
    uint32_t remaining;   /* that the store would grant, by its last reply */
    uint64_t reset_at_ms; /* when the oldest admission expires */
    /* The grants of this host that count, oldest first; amount 0: no mark. */
    struct {
        uint64_t expires_ms;
        uint32_t amount;
    } marks[RLR_LEASE_MARKS];
} rlr_lease_t;

/* Sets a lease without admissions and marks. */
void rlr_lease_init(rlr_lease_t *lease, const unsigned char *key,
                    rlr_limit_t limit);

/* Sets another limit: the marks remain, the lease ends. */
void rlr_lease_change(rlr_lease_t *lease, rlr_limit_t limit);

/* Requests one admission; *wait_ms is set with RLR_LEASE_REFUSED. */
rlr_lease_result_t rlr_lease_take(rlr_lease_t *lease, uint64_t now_ms,
                                  uint64_t *wait_ms);

/* Returns how long until an admission is expected, after a refusal. */
uint64_t rlr_lease_wait(const rlr_lease_t *lease, uint64_t now_ms);

/* Whether more should be requested before the lease is used up. */
bool rlr_lease_is_due(const rlr_lease_t *lease, uint64_t now_ms);

/* Fills a request for `waiting` requests and for those that are expected; tag
 * is a new number, not 0. */
void rlr_lease_request(rlr_message_item_t *item, const rlr_lease_t *lease,
                       uint32_t waiting, uint64_t tag, uint64_t now_ms);

/* Takes the grant of a request that was sent at sent_ms; returns how many of
 * the waiting requests are admitted. */
uint32_t rlr_lease_grant(rlr_lease_t *lease, const rlr_message_item_t *item,
                         const rlr_message_grant_t *grant, uint64_t sent_ms,
                         uint64_t received_ms);

/* Until when a mark of the lease counts; 0: it may be forgotten. */
uint64_t rlr_lease_live_until(const rlr_lease_t *lease, uint64_t now_ms);

/* Fills out[0 .. RLR_LEASE_MARKS - 1] with the marks that count; returns their
 * number. */
uint32_t rlr_lease_report(rlr_message_mark_t *out, const rlr_lease_t *lease,
                          uint64_t now_ms);

#define RLR_LEASE_CLOSINGS 2

/* Ends the lease of a host that stops: fills out[0 .. RLR_LEASE_CLOSINGS - 1]
 * with requests for nothing that return what was not used; returns their
 * number. */
uint32_t rlr_lease_close(rlr_message_item_t *out, rlr_lease_t *lease,
                         uint64_t now_ms);

/* The process that had the lock has died while it wrote: all that the key may
 * have counts as used, until then. */
void rlr_lease_recover(rlr_lease_t *lease, uint64_t counted_until_ms);

/* Forgets all of it: an operator has reset the key. */
void rlr_lease_reset(rlr_lease_t *lease);

#endif
