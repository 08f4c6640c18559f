/* SPDX-License-Identifier: Apache-2.0 */
/* The network between hosts and servers, and faults: slow, cut off and killed
 * hosts, calls that are lost, late or repeated, servers that lose their data,
 * or whose clock is set, two servers that both answer, and, the rare ones,
 * hosts that get the number of another one, hellos that alone arrive, and hosts
 * that lose their marks. */
#include "group_sim.h"

#include <stdlib.h>

#include "../../mod_ratelimit_regional/protocol/period.h"

void sim_release(call_t *call)
{
    if (--call->references == 0) {
        free(call->marks);
        free(call);
    }
}

void sim_add_marks(host_t *host, call_t *call, uint64_t now_ms)
{
    uint32_t room = 0;

    for (uint32_t i = 0; i < host->buckets; i++) {
        for (group_key_t *key = host->keys[i]; key != NULL; key = key->next) {
            if (call->call.mark_count + RLR_LEASE_MARKS > room) {
                room = room * 2 + RLR_LEASE_MARKS;
                call->marks = realloc(call->marks, room * sizeof(*call->marks));
            }
            call->call.mark_count += rlr_lease_report(
                call->marks + call->call.mark_count, &key->lease, now_ms);
        }
    }
    call->call.marks = call->marks;
}

/* A way of 0.1 to 0.6 ms; through a fault it is lost, or ends when the fault
 * does. */
void sim_deliver(sim_t *sim, host_t *host, event_t event, bool to_server)
{
    uint64_t until = host->cut_until_us;

    if (!to_server && host->unanswered_until_us > until) {
        until = host->unanswered_until_us;
    }
    if (sim->us < host->hello_until_us
        && (event.call->call.kind != RLR_MESSAGE_HELLO
            || sim->us / 1000000 % 40 != 0)) {
        sim_release(event.call);
        return;
    }
    event.us = sim->us + 100 + sim_random(sim) % 500;
    if (host->slow_us > 0) {
        event.us += sim_random(sim) % host->slow_us;
    }
    if (sim->us < until) {
        if (sim_random(sim) % 2 == 0) {
            sim_release(event.call);
            return;
        }
        event.us += until - sim->us;
    }
    if (sim->fault_us > 0 && to_server && sim_random(sim) % 500 == 0) {
        event_t again = event;

        again.us += sim_random(sim) % 20000000;
        again.call->references++;
        sim_push(sim, again);
    }
    sim_push(sim, event);
}

void sim_execute(sim_t *sim, host_t *host, event_t event)
{
    call_t *call = event.call;
    rlr_message_grant_t grant = {0, -1, 0, 0};
    rlr_message_reply_t reply = {.grants = &grant};

    if (sim->is_down[call->server]) {
        sim_release(call);
        return;
    }
    group_store_call(sim->servers[call->server], sim->us, &call->call, &reply);
    /* A repeated call has the reply of the first execution or of its own. */
    if (call->executed_us == 0) {
        call->executed_us = sim->us;
        call->reply = reply;
        call->grant = grant;
    }
    event.kind = EVENT_REPLY;
    sim_deliver(sim, host, event, false);
}

static uint64_t pick_duration(sim_t *sim)
{
    static const uint64_t ms[] = {50,   300,   1000,  2500,
                                  5000, 13000, 20000, 40000};

    uint64_t us = ms[sim_random(sim) % 8] * 1000 / 2
        + sim_random(sim) % (ms[sim_random(sim) % 8] * 1000);

    /* Some last until another host has the number. */
    return sim_random(sim) % 8 == 0 ? 90000000 + us * 4 : us;
}

/* A host that stays behind at a turn remains so: it may not return to a store
 * that the others have left for longer than two stores answer. */
static void cut_off(const sim_t *sim, host_t *host, uint64_t us)
{
    if (sim->us + us > host->cut_until_us) {
        host->cut_until_us = sim->us + us;
    }
}

/* The other server becomes the master; hosts follow within some seconds, and
 * the old one is stopped after that. */
static void fail_over(sim_t *sim)
{
    uint32_t old = sim->master;

    if (sim->is_failing_over) {
        return;
    }
    sim->is_failing_over = true;
    sim->master = 1 - old;
    sim->is_down[sim->master] = false;
    group_store_restart(sim->servers[sim->master], sim->next_server++);
    for (uint32_t i = 0; i < sim->host_count; i++) {
        sim_push(sim,
                 (event_t){.us = sim->us + sim_random(sim) % 15000000,
                           .kind = EVENT_MOVE,
                           .host = i});
    }
    sim_push(sim,
             (event_t){.us = sim->us + 20000000 + sim_random(sim) % 30000000,
                       .kind = EVENT_RETIRE,
                       .host = old});
}

/* The store loses its data and all hosts are killed at once; they start again
 * within two seconds. */
static void lose_all(sim_t *sim)
{
    group_store_empty(sim->servers[0]);
    group_store_empty(sim->servers[1]);
    for (uint32_t i = 0; i < sim->host_count; i++) {
        sim->hosts[i].is_down = true;
        sim_push(sim,
                 (event_t){.us = sim->us + sim_random(sim) % 2000000,
                           .kind = EVENT_START,
                           .host = i});
    }
}

static void kill_host(sim_t *sim, host_t *host, uint64_t down_us)
{
    host->is_down = true;
    sim_push(sim,
             (event_t){.us = sim->us + down_us,
                       .kind = EVENT_START,
                       .host = host->index});
}

/* A host is cut off for a minute to longer than its share is reserved. Another
 * one, which is killed, gets its number when it starts; it is often cut off
 * then, with a base in the future or after it, and the store may lose its data
 * while both are. */
static void take_over(sim_t *sim, host_t *host)
{
    uint32_t next = (host->index + 1) % sim->host_count;
    uint64_t share_us = sim->share_ms * 1000;
    uint64_t down_us = 61000000 + sim_random(sim) % 10000000;
    uint64_t cut_us = down_us + sim_random(sim) % (share_us + 100000000);
    uint64_t later_us = sim_random(sim) % 4 == 0
        ? share_us + 70000000 + sim_random(sim) % 20000000
        : down_us + sim_random(sim) % 20000000;

    host->cut_until_us = sim->us + cut_us;
    kill_host(sim, &sim->hosts[next], down_us);
    if (sim_random(sim) % 4 != 0) {
        sim_push(sim,
                 (event_t){.us = sim->us + later_us,
                           .kind = EVENT_CUT,
                           .host = next});
    }
    if (sim_random(sim) % 2 == 0) {
        sim_push(
            sim,
            (event_t){.us = sim->us + later_us + sim_random(sim) % 20000000,
                      .kind = EVENT_EMPTY});
        if (cut_us > later_us) {
            host->cut_until_us = sim->us + later_us
                + sim_random(sim) % 30000000;
        }
    }
}

/* A process dies with a lock: leases and marks of its host are lost, or its
 * membership is; the store often loses its data within two seconds. */
static void lose_marks(sim_t *sim, host_t *host)
{
    uint64_t now_ms = sim_clock(sim, host);

    if (host->is_down) {
        return;
    }
    if (sim_random(sim) % 4 == 0) {
        rlr_member_recover(
            &host->member,
            now_ms + rlr_period_counted(RLR_LIMIT_INTERVAL_SEC_MAX));
        host->next_call_us = 0;
    }
    for (uint32_t i = 0; i < host->buckets; i++) {
        for (group_key_t *key = host->keys[i]; key != NULL; key = key->next) {
            uint64_t until_ms = rlr_lease_live_until(&key->lease, now_ms);

            if (until_ms > host->member.lost_until_ms) {
                host->member.lost_until_ms = until_ms;
            }
            rlr_lease_reset(&key->lease);
        }
    }
    sim_push(
        sim,
        (event_t){.us = sim->us + sim_random(sim) % 2000000,
                  .kind = sim_random(sim) % 4 == 0 ? EVENT_HEAL : EVENT_EMPTY,
                  .host = host->index});
}

static void begin_rare_fault(sim_t *sim, host_t *host)
{
    switch (sim_random(sim) % 4) {
    case 0:
        take_over(sim, host);
        break;
    case 1:
        host->hello_until_us = sim->us + 100000000
            + sim_random(sim) % (200000000 + sim->share_ms * 1000);
        break;
    case 2:
        lose_marks(sim, host);
        break;
    default:
        group_store_empty(sim->servers[sim->master]);
    }
}

static void begin_fault(sim_t *sim)
{
    host_t *host = &sim->hosts[sim_random(sim) % sim->host_count];
    uint64_t duration = pick_duration(sim);
    event_t heal = {
        .us = sim->us + duration, .kind = EVENT_HEAL, .host = host->index};

    sim->faults++;
    switch (sim->has_rare_faults ? 10 : sim_random(sim) % 13) {
    case 0:
        cut_off(sim, host, duration);
        break;
    case 1:
        host->unanswered_until_us = sim->us + duration;
        break;
    case 2:
        host->slow_us = 1000ULL << sim_random(sim) % 13;
        sim_push(sim, heal);
        break;
    case 3:
        kill_host(sim, host, duration);
        break;
    case 4:
        group_store_empty(sim->servers[sim->master]);
        break;
    case 5:
        group_store_restart(sim->servers[sim->master], sim->next_server++);
        break;
    case 6:
        for (uint32_t i = 0; i < sim->host_count; i++) {
            if (sim_random(sim) % 2 == 0) {
                cut_off(sim, &sim->hosts[i], duration);
            }
        }
        break;
    case 7:
        fail_over(sim);
        break;
    case 8:
        lose_all(sim);
        break;
    case 9:
        if (!sim->is_failing_over) {
            fail_over(sim);
            break;
        }
        /* Back to the other server, while it still runs. */
        host->server = 1 - host->server;
        heal.kind = EVENT_MOVE;
        sim_push(sim, heal);
        break;
    default:
        begin_rare_fault(sim, host);
    }
}

/* Whether the host will notice that the clock of its server is set. */
static bool is_connected(const sim_t *sim, const host_t *host)
{
    return !host->is_down && !sim->is_down[host->server]
        && host->member.is_confirmed
        && sim_clock(sim, host) < host->member.heartbeat_until_ms
        && sim->us >= host->cut_until_us && sim->us >= host->unanswered_until_us
        && sim->us >= host->hello_until_us && host->slow_us == 0;
}

/* By more than a call takes. */
static void set_clock(sim_t *sim)
{
    static const int64_t most_ms[] = {40,    300,   700,     4000,
                                      15000, 80000, 3800000, 90000000};
    host_t *host = &sim->hosts[sim_random(sim) % sim->host_count];
    int64_t by_ms = 20
        + (int64_t)(sim_random(sim) % (uint64_t)most_ms[sim_random(sim) % 8]);

    if (is_connected(sim, host)) {
        sim->clocks++;
        group_store_set_clock(sim->servers[host->server],
                              sim_random(sim) % 3 > 0 ? by_ms : -by_ms);
    }
    sim_push(sim,
             (event_t){.us = sim->us + sim_random(sim) % (2 * sim->clock_us),
                       .kind = EVENT_CLOCK});
}

/* Neither requests nor replies reach the host; it returns its leases, and
 * then leaves. */
static void stop_host(sim_t *sim, host_t *host)
{
    uint64_t now_ms = sim_clock(sim, host);

    if (host->is_down) {
        return;
    }
    host->is_down = true;
    host->life++;
    sim->stops++;
    if (!host->member.is_confirmed
        || now_ms >= host->member.heartbeat_until_ms) {
        sim_push(sim,
                 (event_t){.us = sim->us + sim_random(sim) % 4000000,
                           .kind = EVENT_START,
                           .host = host->index});
        return;
    }
    for (uint32_t i = 0; i < host->buckets; i++) {
        for (group_key_t *key = host->keys[i]; key != NULL; key = key->next) {
            rlr_message_item_t items[RLR_LEASE_CLOSINGS];
            uint32_t count = rlr_lease_close(items, &key->lease, now_ms);

            for (uint32_t item = 0; item < count; item++) {
                sim_send_last(sim, host, &items[item]);
            }
        }
    }
    sim_push(sim,
             (event_t){.us = sim->us + sim_random(sim) % 2000,
                       .kind = EVENT_LEAVE,
                       .host = host->index});
}

static void leave(sim_t *sim, host_t *host)
{
    sim_send_last(sim, host, NULL);
    sim_push(sim,
             (event_t){.us = sim->us + sim_random(sim) % 4000000,
                       .kind = EVENT_START,
                       .host = host->index});
}

/* All hosts turn to the other server, which has kept its data and its id: by
 * a reload, or stopped in order and started; some follow later. They stay for
 * seconds, or until all that they were at the former one has ended. A host that
 * stays behind is cut off until all turn back, or some seconds longer. */
static void turn(sim_t *sim)
{
    static const uint64_t most_ms[] = {1, 20, 300, 1000, 4000, 20000};
    uint64_t most_us = 1000 * most_ms[sim_random(sim) % 6];
    uint64_t stay_us = sim->stays_behind ? 70000000 : 125000000;
    uint64_t back_us;
    bool is_stopped = sim_random(sim) % 2 == 0;

    if (sim->stays_behind || sim_random(sim) % 3 == 0) {
        stay_us += sim_random(sim) % (150000000 + sim->share_ms * 1000);
    }
    else {
        stay_us = 500000
            + sim_random(sim) % (1000 * 3 * most_ms[sim_random(sim) % 6]);
    }
    back_us = sim->us + most_us + stay_us;
    if (!sim->is_failing_over) {
        sim->master = 1 - sim->master;
        sim->is_down[sim->master] = false;
        for (uint32_t i = 0; i < sim->host_count; i++) {
            if (sim->stays_behind && sim_random(sim) % 3 == 0) {
                sim->hosts[i].cut_until_us = back_us
                    + sim_random(sim) % 3000000;
                continue;
            }
            sim_push(
                sim,
                (event_t){.us = sim->us + sim_random(sim) % most_us,
                          .kind = is_stopped ? EVENT_TURN_STOP : EVENT_MOVE,
                          .host = i});
        }
    }
    sim_push(sim, (event_t){.us = back_us, .kind = EVENT_TURN});
}

static void start_host(sim_t *sim, host_t *host)
{
    if (host->is_turning) {
        host->server = sim->master;
        host->is_turning = false;
    }
    sim_start_host(sim, host);
}

/* All hosts stop, and start with another configuration. */
static void change_config(sim_t *sim)
{
    sim->changes++;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        stop_host(sim, &sim->hosts[i]);
    }
    sim_push(sim,
             (event_t){.us = sim->us + sim->change_us, .kind = EVENT_CHANGE});
}

void sim_fault(sim_t *sim, event_t event)
{
    host_t *host = &sim->hosts[event.host];

    switch (event.kind) {
    case EVENT_FAULT:
        begin_fault(sim);
        sim_push(
            sim,
            (event_t){.us = sim->us + sim_random(sim) % (2 * sim->fault_us),
                      .kind = EVENT_FAULT});
        break;
    case EVENT_HEAL:
        host->slow_us = 0;
        break;
    case EVENT_START:
        start_host(sim, host);
        break;
    case EVENT_MOVE:
        host->server = sim->master;
        break;
    case EVENT_RETIRE:
        sim->is_down[event.host] = true;
        group_store_empty(sim->servers[event.host]);
        sim->is_failing_over = false;
        break;
    case EVENT_STOP:
        stop_host(sim, &sim->hosts[sim->stops % sim->host_count]);
        sim_push(sim,
                 (event_t){.us = sim->us + sim_random(sim) % (2 * sim->stop_us),
                           .kind = EVENT_STOP});
        break;
    case EVENT_LEAVE:
        leave(sim, host);
        break;
    case EVENT_CHANGE:
        change_config(sim);
        break;
    case EVENT_CLOCK:
        set_clock(sim);
        break;
    case EVENT_TURN:
        turn(sim);
        break;
    case EVENT_TURN_STOP:
        stop_host(sim, host);
        host->is_turning = true;
        break;
    case EVENT_CUT:
        cut_off(sim, host, 30000000 + sim_random(sim) % 60000000);
        break;
    case EVENT_EMPTY:
        group_store_empty(sim->servers[sim->master]);
        break;
    default:
        break;
    }
}
