/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a host to a partition of the store, and its reply. */
#ifndef RLR_MESSAGE_H
#define RLR_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "../counter/window.h"

#define RLR_MESSAGE_KEY_BYTES 16
/* Without a terminator. */
#define RLR_MESSAGE_EPOCH_BYTES 16
#define RLR_MESSAGE_ID_BYTES    16
#define RLR_MESSAGE_NAME_BYTES  64     /* a host's name, with a terminator */
#define RLR_MESSAGE_NAMES_BYTES 200    /* the names of several hosts */
#define RLR_MESSAGE_RULES_BYTES 262144 /* longer rules are cut */
#define RLR_MESSAGE_NO_NUMBER   (-1)
#define RLR_MESSAGE_TAG_MAX     ((1ULL << 48) - 1)

typedef enum rlr_message_kind_t {
    /* Reads the epoch and the time. */
    RLR_MESSAGE_HELLO,
    /* Adds marks that another epoch has granted. */
    RLR_MESSAGE_REPORT,
    /* Renews the membership and requests grants. */
    RLR_MESSAGE_HEARTBEAT,
    /* Removes all marks of keys. */
    RLR_MESSAGE_RESET,
    /* For operators: keeps the rules of a host, and reads those of a number. */
    RLR_MESSAGE_PUBLISH,
    RLR_MESSAGE_READ
} rlr_message_kind_t;

typedef enum rlr_message_status_t {
    RLR_MESSAGE_OK,
    RLR_MESSAGE_LATE,  /* executed too late, or for another epoch */
    RLR_MESSAGE_FULL,  /* all numbers are in use */
    RLR_MESSAGE_OTHER, /* hosts with another configuration use the store */
    RLR_MESSAGE_FAILED /* no reply that can be used */
} rlr_message_status_t;

/* Flags of a call. The host is new (README.md). */
#define RLR_MESSAGE_NEW 1U
/* The host has admitted from its share since the last heartbeat. */
#define RLR_MESSAGE_USED 2U
/* The host has reported all of its marks to this epoch. */
#define RLR_MESSAGE_ATTEST 4U
/* The host's previous heartbeat was with this epoch. */
#define RLR_MESSAGE_STAYED 8U
/* The host's number cannot belong to another host. */
#define RLR_MESSAGE_BRING 16U
/* The host shuts down; a heartbeat without items is the last call of its id. */
#define RLR_MESSAGE_LEAVE 32U
/* The clock of the store was set in the epoch that the call names. */
#define RLR_MESSAGE_CLOCK 64U

/* A request for admissions of a key. */
typedef struct rlr_message_item_t {
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    rlr_limit_t limit;
    uint32_t wanted;  /* at most */
    uint32_t waiting; /* of these, for requests that wait */
    uint64_t tag;     /* of the mark or reset: 1 to RLR_MESSAGE_TAG_MAX */
    /* A lease that has ended, and the admissions that were used of it; tag 0:
     * none. */
    uint64_t closed_tag;
    uint32_t closed_used;
} rlr_message_item_t;

/* Admissions that another epoch has granted. */
typedef struct rlr_message_mark_t {
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    uint32_t amount;
    uint64_t expires_in_ms;
} rlr_message_mark_t;

typedef struct rlr_message_call_t {
    rlr_message_kind_t kind;
    unsigned char id[RLR_MESSAGE_ID_BYTES];
    const char *name;                    /* for operators */
    char epoch[RLR_MESSAGE_EPOCH_BYTES]; /* the only one that may execute it */
    uint64_t latest_ms; /* when it may be executed, by the store's clock */
    uint32_t members;
    uint64_t share_ms;
    uint32_t flags;
    int number;
    int64_t base_offset_ms;
    int64_t joined_offset_ms;
    const rlr_message_item_t *items;
    uint32_t item_count;
    const rlr_message_mark_t *marks;
    uint32_t mark_count;
    const char *rules; /* to be kept, or NULL */
} rlr_message_call_t;

typedef struct rlr_message_grant_t {
    uint32_t granted;
    int64_t wait_ms;    /* until the next may be granted; -1: not known */
    uint32_t remaining; /* that would still be granted */
    uint32_t reset_ms;  /* until an admission expires; 0: none counts */
} rlr_message_grant_t;

/* The hosts of the group, as a heartbeat finds them. */
typedef struct rlr_message_group_t {
    uint32_t missing;     /* hosts without a heartbeat */
    uint32_t reserved;    /* shares, for longer than an interval */
    uint64_t reserved_ms; /* for how long, at most */
    char names[RLR_MESSAGE_NAMES_BYTES]; /* of missing hosts that are known */
    /* How long ago the group started, if keys whose interval has not passed
     * since are granted nothing. 0: not all hosts are there; -1: no start. */
    int64_t started_ms;
} rlr_message_group_t;

/* The rules that a host has published. */
typedef struct rlr_message_rules_t {
    char name[RLR_MESSAGE_NAME_BYTES]; /* of the host */
    uint64_t age_ms;
    char text[RLR_MESSAGE_RULES_BYTES]; /* empty: none are known */
} rlr_message_rules_t;

typedef struct rlr_message_reply_t {
    rlr_message_status_t status;
    uint64_t now_ms;
    char epoch[RLR_MESSAGE_EPOCH_BYTES];
    int number;
    int64_t base_offset_ms;
    int64_t joined_offset_ms;
    bool complete;
    rlr_message_group_t group; /* of a heartbeat */
    /* One per item; the caller provides the memory. */
    rlr_message_grant_t *grants;
    rlr_message_rules_t *rules; /* the same, for RLR_MESSAGE_READ; or NULL */
} rlr_message_reply_t;

#endif
