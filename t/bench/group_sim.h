/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the simulation of a region (ratelimit_group.c). */
#ifndef GROUP_SIM_H
#define GROUP_SIM_H

#include "../../mod_ratelimit_regional/counter/window_rebuild.h"
#include "../../mod_ratelimit_regional/protocol/lease.h"
#include "../../mod_ratelimit_regional/protocol/member.h"
#include "group_event.h"
#include "group_log.h"

/* Of the keys of a host, at least. */
#define HOST_BUCKETS 4096U

typedef struct group_key_t {
    struct group_key_t *next;
    uint32_t key;
    rlr_lease_t lease;
    rlr_window_t *window; /* of the share; NULL until it is used */
    uint32_t waiting;
    uint64_t waiting_since_us; /* the first one of them */
    uint64_t sent_us;          /* 0: no call under way */
} group_key_t;

typedef struct host_t {
    uint32_t index;
    rlr_member_t member;
    rlr_member_config_t config;
    group_key_t **keys;
    uint32_t buckets;
    uint64_t begun_us;
    uint64_t clock_ms;
    double rate;
    uint64_t next_call_us;
    uint64_t heartbeat_sent_us;
    uint32_t life; /* replies to an earlier process are lost */
    bool is_down;
    uint32_t server;
    bool is_turning; /* it starts with the master */
    /* Until when calls, and replies, do not arrive. */
    uint64_t cut_until_us;
    uint64_t unanswered_until_us;
    uint64_t slow_us; /* added to every way */
    /* Until when hellos alone arrive, and these in one second of 40. */
    uint64_t hello_until_us;
} host_t;

typedef struct sim_t {
    uint64_t us;
    host_t *hosts;
    uint32_t host_count;
    uint32_t key_count;
    uint64_t gap_us;
    uint64_t share_ms;
    uint64_t seed;
    double drift;      /* how much faster hosts run than the store, at most */
    uint64_t fault_us; /* between faults, on average; 0: none */
    bool has_rare_faults; /* and no others */
    uint64_t stop_us;     /* between stops of hosts */
    uint32_t stops;
    uint64_t change_us; /* between changes of the configuration */
    uint32_t changes;
    uint64_t clock_us; /* between times at which the clock of a server is set */
    uint32_t clocks;
    uint64_t
        turn_us; /* between turns to the other server, which keeps its data */
    bool stays_behind; /* a host in three, at a turn */
    group_store_t *servers[2];
    bool is_down[2];
    uint32_t master;
    uint32_t next_server; /* a replication id that was not used */
    bool is_failing_over;
    event_t *events;
    uint64_t event_count;
    uint64_t event_room;
    uint64_t event_order;
    sim_log_t admissions;
    sim_log_t refusals;
    uint64_t requests;
    uint64_t local;
    uint64_t calls;
    uint64_t faults;
    uint64_t wrongful;
    /* Of limits up to 64, and how long after an admission became possible. */
    uint64_t wrongful_small;
    uint64_t wrongful_us;
} sim_t;

rlr_limit_t sim_limit(uint32_t key);
uint64_t sim_random(sim_t *sim);
uint64_t sim_clock(const sim_t *sim, const host_t *host);
void sim_start_host(sim_t *sim, host_t *host);
void sim_send_last(sim_t *sim, host_t *host, const rlr_message_item_t *item);
void sim_reply(sim_t *sim, host_t *host, call_t *call);

/* group_events.c: the queue of events. */
void sim_push(sim_t *sim, event_t event);
event_t sim_pop(sim_t *sim);

/* group_faults.c: the network between hosts and servers. */
void sim_deliver(sim_t *sim, host_t *host, event_t event, bool to_server);
void sim_execute(sim_t *sim, host_t *host, event_t event);
void sim_release(call_t *call);
void sim_fault(sim_t *sim, event_t event);
void sim_add_marks(host_t *host, call_t *call, uint64_t now_ms);

/* group_log.c: prints the numbers of the simulation; returns the admissions
 * beyond a limit, of which there must be none. */
uint64_t sim_log_report(sim_t *sim, uint64_t seconds, uint64_t seed);

#endif
