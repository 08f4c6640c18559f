/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../t/bench/group_epoch.c */
/* OBJECTS: ../mod_ratelimit_regional/protocol/ ../t/bench/group_store.c */
/* OBJECTS: ../t/bench/group_marks.c ../t/bench/group_faults.c */
/* OBJECTS: ../t/bench/group_log.c ../t/bench/group_events.c */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/*
 * Simulates the hosts of a region and their store: the decision code of the
 * hosts with its time as an argument, and the rules of the store in C. Prints
 * over-admissions, which must be 0, wrongful refusals, calls and memory.
 *
 *   ratelimit_group [hosts=4] [keys=1000] [seconds=60] [rate=2000] [seed=1]
 *                    [faults=10] [rare=0] [stops=0] [share=3600] [from=6]
 *                    [changes=...] [clocks=...] [turns=...] [behind=0]
 *
 * faults, stops, changes and clocks are numbers of seconds between two faults
 * (0: none; rare=1: those alone that need minutes without others), orderly
 * stops of a host, stops of all to change RateLimitStoreHosts and -ShareTime,
 * and clocks of a server that are set. share is RateLimitStoreShareTime, from
 * the second of the first request, turns that from which all hosts turn to the
 * other server and back; behind=1 cuts some off.
 */
#include "group_sim.h"

#include <stdlib.h>
#include <string.h>

#include "../../mod_ratelimit_regional/protocol/period.h"

#define TIMEOUT_US 5000

static const rlr_limit_t limits[] = {{10, 10},  {1, 10},    {30, 60},
                                     {3, 5},    {100, 10},  {300, 10},
                                     {750, 60}, {2000, 10}, {6000, 10}};

rlr_limit_t sim_limit(uint32_t key)
{
    return limits[key % (sizeof(limits) / sizeof(limits[0]))];
}

uint64_t sim_random(sim_t *sim)
{
    sim->seed ^= sim->seed << 13;
    sim->seed ^= sim->seed >> 7;
    sim->seed ^= sim->seed << 17;
    return sim->seed;
}

/* ---- Hosts ---- */

uint64_t sim_clock(const sim_t *sim, const host_t *host)
{
    double ms = (double)(sim->us - host->begun_us) / 1000.0;

    return host->clock_ms + (uint64_t)(ms * host->rate);
}

static group_key_t *find_key(host_t *host, uint32_t key)
{
    group_key_t **at = &host->keys[key % host->buckets];
    unsigned char digest[RLR_MESSAGE_KEY_BYTES] = {0};

    while (*at != NULL && (*at)->key != key) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        *at = calloc(1, sizeof(**at));
        (*at)->key = key;
        memcpy(digest, &key, sizeof(key));
        digest[8] = (unsigned char)(key >> 3);
        rlr_lease_init(&(*at)->lease, digest, sim_limit(key));
    }
    return *at;
}

static void drop_keys(host_t *host)
{
    for (uint32_t i = 0; i < host->buckets; i++) {
        while (host->keys[i] != NULL) {
            group_key_t *key = host->keys[i];

            host->keys[i] = key->next;
            free(key->window);
            free(key);
        }
    }
}

void sim_start_host(sim_t *sim, host_t *host)
{
    drop_keys(host);
    rlr_member_init(&host->member);
    host->config.members = sim->host_count + sim->changes % 2;
    host->config.share_ms = sim->share_ms / (1 + sim->changes % 3);
    for (int i = 0; i < RLR_MESSAGE_ID_BYTES; i++) {
        host->config.id[i] = (unsigned char)sim_random(sim);
    }
    host->begun_us = sim->us;
    host->clock_ms = sim_random(sim) % 100000000 + 1000;
    /* Half of all differ from the store as much as they may. */
    host->rate = 1
        + sim->drift
            * (sim_random(sim) % 2 == 0
                   ? 1
                   : (double)(sim_random(sim) % 1000) / 1000);
    host->next_call_us = 0;
    host->life++;
    host->is_down = false;
}

/* ---- Calls ---- */

/* Sends a call, with one item for `key` or none. */
static void send_call(sim_t *sim, host_t *host, group_key_t *key)
{
    uint64_t now_ms = sim_clock(sim, host);
    bool alone;
    rlr_message_kind_t kind = rlr_member_next(&host->member, &alone, now_ms);
    call_t *call = calloc(1, sizeof(*call));
    event_t event = {.kind = EVENT_EXECUTE, .host = host->index, .call = call};

    rlr_member_fill(&call->call, &host->member, &host->config, kind, now_ms);
    call->generation = host->member.generation;
    call->sent_ms = now_ms;
    call->sent_us = sim->us;
    call->life = host->life;
    call->server = host->server;
    call->references = 1;
    if (alone) {
        host->next_call_us = sim->us + 2 * RLR_PERIOD_CALL_MS * 1000;
        call->is_alone = true;
    }
    if (kind == RLR_MESSAGE_HEARTBEAT) {
        host->heartbeat_sent_us = sim->us;
    }
    if (kind == RLR_MESSAGE_HEARTBEAT && key != NULL) {
        rlr_lease_request(&call->item, &key->lease, key->waiting,
                          (sim_random(sim) >> 17) + 1, now_ms);
        call->call.items = &call->item;
        call->call.item_count = 1;
        call->key = key->key;
        call->has_key = true;
        call->waiting_since_us = key->waiting_since_us;
        key->waiting = 0;
        key->sent_us = sim->us;
    }
    if (kind == RLR_MESSAGE_REPORT) {
        sim_add_marks(host, call, now_ms);
    }
    sim->calls++;
    sim_deliver(sim, host, event, true);
}

/* A heartbeat of a host that stops, with an item, or the last one. */
void sim_send_last(sim_t *sim, host_t *host, const rlr_message_item_t *item)
{
    uint64_t now_ms = sim_clock(sim, host);
    call_t *call = calloc(1, sizeof(*call));
    event_t event = {.kind = EVENT_EXECUTE, .host = host->index, .call = call};

    rlr_member_fill(&call->call, &host->member, &host->config,
                    RLR_MESSAGE_HEARTBEAT, now_ms);
    call->call.flags |= RLR_MESSAGE_LEAVE;
    if (item != NULL) {
        call->item = *item;
        call->call.items = &call->item;
        call->call.item_count = 1;
    }
    call->life = host->life - 1;
    call->server = host->server;
    call->references = 1;
    sim->calls++;
    sim_deliver(sim, host, event, true);
}

static bool may_send(const sim_t *sim, const host_t *host)
{
    return sim->us >= host->next_call_us;
}

static void refuse(sim_t *sim, uint32_t key, uint64_t us, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sim_log_add(&sim->refusals, key, us);
    }
}

/* Requests that wait for longer than the limit are refused. */
static void expire_waiting(sim_t *sim, group_key_t *key)
{
    if (key->waiting > 0 && sim->us > key->waiting_since_us + TIMEOUT_US) {
        refuse(sim, key->key, sim->us, key->waiting);
        key->waiting = 0;
    }
}

static void take_grant(sim_t *sim, host_t *host, call_t *call,
                       uint64_t received_ms)
{
    group_key_t *key = find_key(host, call->key);
    uint32_t admitted = rlr_lease_grant(&key->lease, &call->item, &call->grant,
                                        call->sent_ms, received_ms);

    if (sim->us > call->waiting_since_us + TIMEOUT_US) {
        admitted = 0;
    }
    for (uint32_t i = 0; i < admitted; i++) {
        sim_log_add(&sim->admissions, key->key, call->executed_us);
    }
    refuse(sim, key->key, sim->us, call->item.waiting - admitted);
}

void sim_reply(sim_t *sim, host_t *host, call_t *call)
{
    uint64_t received_ms = sim_clock(sim, host);
    bool is_used;

    if (call->life != host->life || call->is_replied) {
        return;
    }
    call->is_replied = true;
    is_used = rlr_member_answer(&host->member, &call->call, &call->reply,
                                call->generation, call->sent_ms, received_ms);
    if (call->is_alone) {
        host->next_call_us = 0;
    }
    if (call->call.kind == RLR_MESSAGE_REPORT
        && call->reply.status == RLR_MESSAGE_OK) {
        rlr_member_reported(&host->member, call->generation);
    }
    if (is_used && call->has_key) {
        take_grant(sim, host, call, received_ms);
    }
    else if (call->has_key) {
        refuse(sim, call->key, sim->us, call->item.waiting);
    }
    if (call->has_key) {
        group_key_t *key = find_key(host, call->key);

        key->sent_us = 0;
        expire_waiting(sim, key);
        if (key->waiting > 0 && may_send(sim, host)) {
            send_call(sim, host, key);
        }
    }
    if (!host->member.is_confirmed && may_send(sim, host)) {
        send_call(sim, host, NULL);
    }
}

/* ---- Requests ---- */

static void read_host(rlr_time_t *now, void *baton)
{
    const uint64_t *ms = baton;

    now->floor_ms = *ms;
    now->ceil_ms = *ms + 1;
}

static bool admit_local(host_t *host, group_key_t *key, uint64_t now_ms)
{
    rlr_limit_t limit = sim_limit(key->key);
    rlr_clock_t clock = {read_host, &now_ms};
    rlr_window_decision_t decision;
    rlr_window_copy_t copy = {0, 1, {0}};
    uint32_t share = rlr_member_usable_share(&host->member, &host->config,
                                             key->lease.key, limit, now_ms);

    if (share == 0) {
        return false;
    }
    limit.count = share;
    limit.interval_sec = rlr_period_share_sec(limit.interval_sec);
    if (key->window == NULL) {
        key->window = calloc(1, sizeof(*key->window));
    }
    if (!rlr_limit_equal(rlr_window_limit(key->window), limit)) {
        rlr_window_close(&copy, key->window, limit.interval_sec, false, &clock);
        rlr_window_copy_fit(&copy, NULL, limit);
        rlr_window_begin(key->window, &copy, &clock);
        rlr_window_finish(key->window, 1, limit, &copy);
    }
    rlr_window_admit(key->window, 1, limit, limit.count, &clock, &decision);
    if (decision.admitted) {
        rlr_member_use_share(&host->member, sim_limit(key->key).interval_sec,
                             now_ms);
    }
    return decision.admitted;
}

static void request(sim_t *sim, host_t *host, uint32_t number)
{
    uint64_t now_ms = sim_clock(sim, host);
    group_key_t *key = find_key(host, number);
    bool is_connected = now_ms < host->member.heartbeat_until_ms
        && host->member.is_confirmed;
    uint64_t wait_ms;
    rlr_lease_result_t result = rlr_lease_take(&key->lease, now_ms, &wait_ms);

    sim->requests++;
    expire_waiting(sim, key);
    /* A reply that never came. */
    if (key->sent_us != 0 && sim->us > key->sent_us + 1000000) {
        key->sent_us = 0;
    }
    if (result == RLR_LEASE_ADMITTED) {
        sim_log_add(&sim->admissions, number, sim->us);
    }
    else if (!is_connected) {
        if (admit_local(host, key, now_ms)) {
            sim->local++;
            sim_log_add(&sim->admissions, number, sim->us);
        }
        else {
            refuse(sim, number, sim->us, 1);
        }
        return;
    }
    else if (result == RLR_LEASE_REFUSED) {
        refuse(sim, number, sim->us, 1);
        return;
    }
    else {
        if (key->waiting++ == 0) {
            key->waiting_since_us = sim->us;
        }
    }
    if (key->sent_us == 0 && is_connected && may_send(sim, host)
        && (key->waiting > 0 || rlr_lease_is_due(&key->lease, now_ms))) {
        send_call(sim, host, key);
    }
}

static void tick(sim_t *sim, host_t *host)
{
    uint64_t now_ms = sim_clock(sim, host);

    if (!host->is_down && may_send(sim, host)
        && (now_ms >= host->member.heartbeat_until_ms
            || !host->member.is_confirmed
            || sim->us >= host->heartbeat_sent_us + 400000)) {
        send_call(sim, host, NULL);
    }
    sim_push(sim,
             (event_t){.us = sim->us + 100000,
                       .kind = EVENT_TICK,
                       .host = host->index});
}

/* A key by Zipf's law: as many requests for the first key as for the next two,
 * the next four, and so on. */
static uint32_t pick_key(sim_t *sim)
{
    uint32_t bits = 1;

    while (bits < 32 && sim->key_count >> bits > 0) {
        bits++;
    }
    bits = 1U << sim_random(sim) % bits;
    return (bits - 1 + (uint32_t)(sim_random(sim) % bits)) % sim->key_count;
}

/* One request of 64 is a burst: 24 to a host, each host in its turn. */
static void arrive(sim_t *sim)
{
    uint32_t host = (uint32_t)(sim_random(sim) % sim->host_count);
    uint32_t key = pick_key(sim);
    uint32_t burst = sim_random(sim) % 64 == 0 ? 24 : 1;

    if (burst > 1) {
        key = (uint32_t)(sim_random(sim) % 10);
        host = (uint32_t)(sim->us / 700000) % sim->host_count;
    }
    for (uint32_t i = 0; i < burst; i++) {
        if (!sim->hosts[host].is_down) {
            request(sim, &sim->hosts[host], key % sim->key_count);
        }
    }
    sim_push(sim,
             (event_t){.us = sim->us + 1 + sim_random(sim) % (2 * sim->gap_us),
                       .kind = EVENT_ARRIVE});
}

static void run(sim_t *sim, uint64_t from_us, uint64_t end_us)
{
    for (uint32_t i = 0; i < sim->host_count; i++) {
        sim->hosts[i].index = i;
        sim->hosts[i].buckets = HOST_BUCKETS + sim->key_count / sim->host_count;
        sim->hosts[i].keys = calloc(sim->hosts[i].buckets,
                                    sizeof(group_key_t *));
        sim_start_host(sim, &sim->hosts[i]);
        sim_push(sim, (event_t){.us = i * 1000, .kind = EVENT_TICK, .host = i});
    }
    sim_push(sim, (event_t){.us = from_us, .kind = EVENT_ARRIVE});
    if (sim->fault_us > 0) {
        sim_push(sim, (event_t){.us = 8000000, .kind = EVENT_FAULT});
    }
    if (sim->stop_us > 0) {
        sim_push(sim, (event_t){.us = from_us, .kind = EVENT_STOP});
    }
    sim_push(sim, (event_t){.us = sim->change_us, .kind = EVENT_CHANGE});
    sim_push(sim, (event_t){.us = sim->clock_us, .kind = EVENT_CLOCK});
    sim_push(sim, (event_t){.us = sim->turn_us, .kind = EVENT_TURN});
    while (sim->us < end_us) {
        event_t event = sim_pop(sim);
        host_t *host = &sim->hosts[event.host];

        sim->us = event.us;
        switch (event.kind) {
        case EVENT_ARRIVE:
            arrive(sim);
            break;
        case EVENT_TICK:
            tick(sim, host);
            break;
        case EVENT_EXECUTE:
            sim_execute(sim, host, event);
            break;
        case EVENT_REPLY:
            sim_reply(sim, host, event.call);
            sim_release(event.call);
            break;
        default:
            sim_fault(sim, event);
        }
    }
}

static void drop(sim_t *sim)
{
    for (uint32_t i = 0; i < sim->host_count; i++) {
        drop_keys(&sim->hosts[i]);
        free(sim->hosts[i].keys);
    }
    while (sim->event_count > 0) {
        event_t event = sim_pop(sim);

        if (event.call != NULL) {
            sim_release(event.call);
        }
    }
    free(sim->hosts);
    free(sim->events);
    free(sim->admissions.entries);
    free(sim->refusals.entries);
    group_store_drop(sim->servers[0]);
    group_store_drop(sim->servers[1]);
}

static uint64_t read_option(int argc, char **argv, const char *name,
                            uint64_t usual)
{
    size_t length = strlen(name);

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') {
            return strtoull(argv[i] + length + 1, NULL, 10);
        }
    }
    return usual;
}

int main(int argc, char **argv)
{
    uint64_t seconds = read_option(argc, argv, "seconds", 60);
    uint64_t rate = read_option(argc, argv, "rate", 2000);
    uint64_t seed = read_option(argc, argv, "seed", 1);
    sim_t sim = {
        .host_count = (uint32_t)read_option(argc, argv, "hosts", 4),
        .key_count = (uint32_t)read_option(argc, argv, "keys", 1000),
        .share_ms = read_option(argc, argv, "share", 3600) * 1000,
        .seed = seed * 0x9e3779b97f4a7c15U,
        .fault_us = read_option(argc, argv, "faults", 10) * 1000000,
        .has_rare_faults = read_option(argc, argv, "rare", 0) != 0,
        .stop_us = read_option(argc, argv, "stops", 0) * 1000000,
        .change_us = read_option(argc, argv, "changes", 1000000000) * 1000000,
        .clock_us = read_option(argc, argv, "clocks", 1000000000) * 1000000,
        .turn_us = read_option(argc, argv, "turns", 1000000000) * 1000000,
        .stays_behind = read_option(argc, argv, "behind", 0) != 0,
    };
    uint64_t over;

    /* Clocks differ by less than 1/512: all hosts are faster, or slower. */
    sim.drift = (sim.seed >> 40) % 2 == 0 ? 0.9999 / 512 : -0.9999 / 512;
    sim.gap_us = 1000000 / rate > 0 ? 1000000 / rate : 1;
    sim.hosts = calloc(sim.host_count, sizeof(*sim.hosts));
    sim.servers[0] = group_store_make(1, 1700000000000);
    sim.servers[1] = group_store_make(2, 1700000000000 - 200000);
    group_store_set_rate(sim.servers[1], sim.drift < 0 ? 1 + sim.drift : 1);
    sim.next_server = 3;
    run(&sim, read_option(argc, argv, "from", 6) * 1000000, seconds * 1000000);
    over = sim_log_report(&sim, seconds, seed);
    drop(&sim);
    return over == 0 ? 0 : 1;
}
