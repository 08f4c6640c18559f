/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's membership of one partition of the store: which call it may send
 * next, whether it may use a reply, and whether it is cut off and admits its
 * share. One per partition in shared memory; the caller holds the partition's
 * lock. Times are milliseconds of the host's monotonic clock. Neither httpd nor
 * APR; README.md has the rules.
 */
#ifndef RLR_MEMBER_H
#define RLR_MEMBER_H

#include "message.h"

/* The same on all hosts of a region. */
typedef struct rlr_member_config_t {
    unsigned char id[RLR_MESSAGE_ID_BYTES];
    char name[RLR_MESSAGE_NAME_BYTES];
    uint32_t members;
    /* How long the host admits its share while it is cut off; 0: never. */
    uint64_t share_ms;
} rlr_member_config_t;

/* A bound of the store's clock less the host's, when it was read at that time.
 */
typedef struct rlr_member_bound_t {
    int64_t ms;
    uint64_t at_ms;
} rlr_member_bound_t;

typedef struct rlr_member_t {
    /* The epoch that answered last; the only one that gets calls. */
    char epoch[RLR_MESSAGE_EPOCH_BYTES];
    bool is_confirmed; /* it has answered a heartbeat */
    int number;
    /* The configuration of the last answered heartbeat. */
    uint32_t members;
    uint64_t share_ms;
    bool was_member;
    bool is_reporting; /* marks must be reported before the next heartbeat */
    bool is_attesting;
    bool keeps_base;  /* the epoch has the base of an earlier one to continue */
    bool is_complete; /* the epoch, at the last heartbeat */
    bool is_entitled; /* the base was not later than the last heartbeat */
    bool has_used_share; /* since the last heartbeat */
    bool has_left;       /* sends no calls, and admits nothing */
    /* Changes with the epoch; replies to calls of an earlier one are not
     * used. */
    uint32_t generation;
    uint64_t heartbeat_until_ms; /* until when it may send heartbeats */
    uint64_t answered_ms;        /* when it sent the last answered call */
    uint64_t confirmed_ms;       /* when it sent the last answered heartbeat */
    uint64_t attest_until_ms;
    uint64_t share_until_ms; /* until when an admission of the share counts */
    uint64_t share_from_ms;  /* before that it admits nothing of the share */
    uint64_t lost_until_ms;  /* until when a mark counts that was not kept */
    int64_t base_ms;
    int64_t joined_ms; /* when the host got the number */
    /* By all replies of the epoch; if none has come the clock is not known. */
    bool knows_clock;
    bool is_clock_set; /* since: the epoch must end */
    rlr_member_bound_t least;
    rlr_member_bound_t most;
} rlr_member_t;

/* Sets a member that was never connected. */
void rlr_member_init(rlr_member_t *member);

/* The process that had the lock has died in between: the number is asked for
 * again, and nothing is assumed about the past; no earlier admission counts for
 * longer than until counted_until_ms. */
void rlr_member_recover(rlr_member_t *member, uint64_t counted_until_ms);

/* Another table counts the share from now on: not before what the former one
 * has counted is over. */
void rlr_member_change_table(rlr_member_t *member);

/* Returns the kind of the next call; *is_exclusive: no other call may be sent
 * before its reply comes, or RLR_PERIOD_CALL_MS have passed. */
rlr_message_kind_t rlr_member_next(const rlr_member_t *member,
                                   bool *is_exclusive, uint64_t now_ms);

/* Fills a call of that kind, without items and marks; now_ms was read before
 * the lock was taken or later, and before the call is sent. */
void rlr_member_fill(rlr_message_call_t *call, const rlr_member_t *member,
                     const rlr_member_config_t *config, rlr_message_kind_t kind,
                     uint64_t now_ms);

/*
 * The host stops: moves the membership to `stopped`, of which only that caller
 * sends calls, with the flag RLR_MESSAGE_LEAVE. Replies to calls under way are
 * not used.
 */
void rlr_member_leave(rlr_member_t *member, rlr_member_t *stopped);

/* The marks have been reported to the epoch that answered last. */
void rlr_member_reported(rlr_member_t *member, uint32_t generation);

/*
 * Takes the reply to a call that was filled at sent_ms with the given
 * generation. Returns true if its grants may be used: the caller stores them
 * under the same lock.
 */
bool rlr_member_answer(rlr_member_t *member, const rlr_message_call_t *call,
                       const rlr_message_reply_t *reply, uint32_t generation,
                       uint64_t sent_ms, uint64_t received_ms);

/* Returns how many requests of the key the host may admit in
 * rlr_period_share_sec() seconds because it is cut off; 0: none. */
uint32_t rlr_member_usable_share(const rlr_member_t *member,
                                 const rlr_member_config_t *config,
                                 const unsigned char *key, rlr_limit_t limit,
                                 uint64_t now_ms);

/* Returns how long until the host may do so, if no call is answered; 0: not
 * known, or the store answers. */
uint64_t rlr_member_share_wait(const rlr_member_t *member,
                               const rlr_member_config_t *config,
                               const unsigned char *key, rlr_limit_t limit,
                               uint64_t now_ms);

/* Records an admission of the share, before it is admitted. */
void rlr_member_use_share(rlr_member_t *member, uint32_t interval_sec,
                          uint64_t now_ms);

/* The share of a member of a key's limit; those of all members add up to
 * count. */
static inline uint32_t rlr_member_share(int number, uint32_t count,
                                        uint32_t members,
                                        const unsigned char *key)
{
    return count / members
        + (((uint32_t)number + key[0]) % members < count % members);
}

#endif
