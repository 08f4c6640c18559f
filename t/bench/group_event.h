/* SPDX-License-Identifier: Apache-2.0 */
/* The events of the simulation of a region, and calls on their way. */
#ifndef GROUP_EVENT_H
#define GROUP_EVENT_H

#include "group_store.h"

enum event_kind {
    EVENT_ARRIVE,
    EVENT_TICK,
    EVENT_EXECUTE,
    EVENT_REPLY,
    EVENT_FAULT,
    EVENT_HEAL,
    EVENT_START,
    EVENT_MOVE,
    EVENT_RETIRE,
    EVENT_STOP,
    EVENT_LEAVE,
    EVENT_CUT,      /* the host is cut off until it is healed */
    EVENT_EMPTY,    /* the store loses its data */
    EVENT_CHANGE,   /* of the configuration */
    EVENT_CLOCK,    /* of a server is set */
    EVENT_TURN,     /* all hosts turn to the other server */
    EVENT_TURN_STOP /* one is stopped, and started with the other server */
};

typedef struct call_t {
    rlr_message_call_t call;
    rlr_message_reply_t reply;
    rlr_message_item_t item;
    rlr_message_grant_t grant;
    rlr_message_mark_t *marks;
    uint32_t generation;
    uint64_t sent_ms;
    uint64_t sent_us;
    uint64_t executed_us;
    uint64_t waiting_since_us;
    uint32_t life;
    uint32_t server;
    uint32_t key;
    int references;
    bool has_key;
    bool is_alone;
    bool is_replied;
} call_t;

typedef struct event_t {
    uint64_t us;
    uint64_t order;
    enum event_kind kind;
    uint32_t host;
    call_t *call;
} event_t;

#endif
