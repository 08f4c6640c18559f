/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../t/bench/group_epoch.c */
/* OBJECTS: ../mod_ratelimit_regional/store/wire.c */
/* OBJECTS: ../mod_ratelimit_regional/store/script.c */
/* OBJECTS: ../t/bench/group_marks.c ../t/bench/group_store.c */
/*
 * Sends random calls to the script at a Redis and to group_store.c, which the
 * simulation uses, and compares the replies: group_compare PORT SEED CALLS.
 * The script reads the time from the key `clock` instead. Redis must permit
 * DEBUG.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <hiredis/hiredis.h>

#include "../../mod_ratelimit_regional/protocol/period.h"
#include "../../mod_ratelimit_regional/store/wire.h"
#include "group_store.h"

#define HOSTS   6
#define MEMBERS 4
#define ITEMS   3

/* A host; some of its calls are wrong on purpose. */
typedef struct host_t {
    unsigned char id[RLR_MESSAGE_ID_BYTES];
    char epochs[2][RLR_MESSAGE_EPOCH_BYTES];
    int number;
    bool was_member;
    bool has_stayed;
    bool is_greeted;
    int64_t base;
    int64_t joined;
    uint64_t tag;
} host_t;

typedef struct compare_t {
    redisContext *redis;
    group_store_t *store;
    char sha[41];
    uint64_t seed;
    uint64_t now_ms;
    uint32_t server;
    host_t hosts[HOSTS];
    uint64_t granted;
    uint64_t completed;
    uint64_t left;
    uint64_t other;    /* calls that were refused for their configuration */
    uint64_t set;      /* calls that say that the clock was set */
    uint64_t followed; /* grants in epochs that follow another configuration */
    uint32_t config;
    uint32_t stopping; /* calls until all hosts have left */
    uint32_t calm;     /* calls that follow the rules: all hosts in turn */
} compare_t;

#define STOP_CALLS (2U * HOSTS)
#define CALM_CALLS 200U
#define CALM_MS    100U

static uint64_t pick(compare_t *compare, uint64_t below)
{
    compare->seed ^= compare->seed << 13;
    compare->seed ^= compare->seed >> 7;
    compare->seed ^= compare->seed << 17;
    return (compare->seed >> 11) % below;
}

static void run(compare_t *compare, const char *command)
{
    redisReply *reply = redisCommand(compare->redis, command);

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        printf("%s: %s\n", command, reply ? reply->str : "no reply");
        exit(2);
    }
    freeReplyObject(reply);
}

/* Loads the script with another clock. */
static void load(compare_t *compare)
{
    static const char before[] = "redis.call('TIME')";
    const char *at = strstr(rlr_wire_script, before);
    size_t room = strlen(rlr_wire_script) + 100;
    char *script = malloc(room);
    redisReply *reply;

    snprintf(script, room, "%.*s{ 0, redis.call('GET', 'clock') * 1000 }%s",
             (int)(at - rlr_wire_script), rlr_wire_script, at + strlen(before));
    reply = redisCommand(compare->redis, "SCRIPT LOAD %s", script);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING) {
        printf("SCRIPT LOAD: %s\n", reply ? reply->str : "no reply");
        exit(2);
    }
    snprintf(compare->sha, sizeof(compare->sha), "%s", reply->str);
    freeReplyObject(reply);
    free(script);
}

static uint32_t pick_flags(compare_t *compare, const host_t *host)
{
    uint32_t flags = host->was_member ? RLR_MESSAGE_BRING : RLR_MESSAGE_NEW;

    if (compare->calm > 0 || compare->stopping > 0) {
        return flags | (host->has_stayed ? RLR_MESSAGE_STAYED : 0);
    }
    if (host->has_stayed && pick(compare, 50) > 0) {
        flags |= RLR_MESSAGE_STAYED;
    }
    if (host->was_member && !host->has_stayed && pick(compare, 4) > 0) {
        flags |= RLR_MESSAGE_ATTEST;
    }
    if (pick(compare, 500) == 0) {
        flags |= RLR_MESSAGE_CLOCK;
    }
    if (pick(compare, 60) == 0) {
        flags |= RLR_MESSAGE_USED;
    }
    if (pick(compare, 40) == 0) {
        flags &= ~RLR_MESSAGE_BRING;
    }
    return flags;
}

static void fill_items(compare_t *compare, host_t *host,
                       rlr_message_item_t *items)
{
    static const rlr_limit_t limits[] = {
        {10, 10}, {3, 5}, {30, 60}, {300, 10}, {6000, 10}};

    for (int i = 0; i < ITEMS; i++) {
        uint64_t key = pick(compare, 10);

        memset(&items[i], 0, sizeof(items[i]));
        memset(items[i].key, (int)key * 37, sizeof(items[i].key));
        items[i].limit = limits[key % 5];
        items[i].waiting = (uint32_t)pick(compare, 4);
        items[i].wanted = items[i].waiting
            + (uint32_t)pick(compare, items[i].limit.count / 20 + 1);
        items[i].tag = ++host->tag;
        if (pick(compare, 3) == 0) {
            items[i].closed_tag = host->tag - pick(compare, 30);
            items[i].closed_used = (uint32_t)pick(compare, 3);
        }
    }
}

/* Some hosts leave, and some that are not members try to. */
static uint32_t pick_leave(compare_t *compare)
{
    if (compare->stopping > 0) {
        return compare->stopping % 2 == 1 ? RLR_MESSAGE_LEAVE : 0;
    }
    return compare->calm == 0 && pick(compare, 80) == 0 ? RLR_MESSAGE_LEAVE : 0;
}

static bool has_same_grants(const rlr_message_grant_t *a,
                            const rlr_message_grant_t *b)
{
    for (int i = 0; i < ITEMS; i++) {
        if (a[i].granted != b[i].granted || a[i].wait_ms != b[i].wait_ms
            || a[i].remaining != b[i].remaining
            || a[i].reset_ms != b[i].reset_ms) {
            return false;
        }
    }
    return true;
}

static void count(compare_t *compare, const rlr_message_call_t *call,
                  const rlr_message_reply_t *reply)
{
    compare->other += reply->status == RLR_MESSAGE_OTHER;
    compare->set += (call->flags & RLR_MESSAGE_CLOCK) != 0
        && memcmp(call->epoch, reply->epoch, sizeof(call->epoch)) != 0;
    if (reply->status != RLR_MESSAGE_OK
        || call->kind != RLR_MESSAGE_HEARTBEAT) {
        return;
    }
    compare->left += (call->flags & RLR_MESSAGE_LEAVE) != 0;
    for (int i = 0; i < ITEMS && compare->config > 0; i++) {
        compare->followed += reply->grants[i].granted;
    }
}

/* Sends the call to both; false if the replies differ. */
static bool send_both(compare_t *compare, host_t *host,
                      rlr_message_call_t *call, rlr_message_reply_t *reply,
                      apr_pool_t *pool)
{
    rlr_message_grant_t grants[2][ITEMS] = {{{0}}};
    rlr_message_reply_t replies[2] = {{.grants = grants[0]},
                                      {.grants = grants[1]}};
    rlr_wire_command_t command;
    redisReply *received;
    const char *error;
    bool same;

    memcpy(call->epoch, host->epochs[0], sizeof(call->epoch));
    group_store_call(compare->store, compare->now_ms * 1000, call, &replies[0]);
    memcpy(call->epoch, host->epochs[1], sizeof(call->epoch));
    rlr_wire_encode(&command, call, 5, compare->sha, pool);
    received = redisCommandArgv(compare->redis, command.count, command.texts,
                                command.lengths);
    rlr_wire_decode(&replies[1], call->item_count, received, &error);
    if (error != NULL) {
        printf("script: %s\n", error);
    }
    freeReplyObject(received);
    same = replies[0].status == replies[1].status
        && replies[0].now_ms == replies[1].now_ms
        && replies[0].number == replies[1].number
        && replies[0].base_offset_ms == replies[1].base_offset_ms
        && replies[0].joined_offset_ms == replies[1].joined_offset_ms
        && replies[0].complete == replies[1].complete
        && has_same_grants(grants[0], grants[1]);
    for (int i = 0; i < 2; i++) {
        memcpy(host->epochs[i], replies[i].epoch, sizeof(host->epochs[i]));
    }
    for (int i = 0; i < 2 && !same; i++) {
        printf("%s: status %d number %d base %" PRId64
               " complete %d granted %u wait %" PRId64 " unused %u reset %u\n",
               i == 0 ? "model" : "script", (int)replies[i].status,
               replies[i].number, replies[i].base_offset_ms,
               replies[i].complete, grants[i][0].granted, grants[i][0].wait_ms,
               grants[i][0].remaining, grants[i][0].reset_ms);
    }
    *reply = replies[1];
    for (int i = 0; i < ITEMS; i++) {
        compare->granted += grants[1][i].granted;
    }
    compare->completed += replies[1].complete;
    count(compare, call, &replies[1]);
    return same;
}

static void learn(compare_t *compare, host_t *host,
                  const rlr_message_call_t *call,
                  const rlr_message_reply_t *reply)
{
    int64_t now = (int64_t)compare->now_ms;

    if (call->kind != RLR_MESSAGE_HEARTBEAT
        || reply->status != RLR_MESSAGE_OK) {
        host->has_stayed = host->has_stayed && reply->status == RLR_MESSAGE_OK;
        return;
    }
    host->joined = now + reply->joined_offset_ms;
    host->was_member = true;
    host->has_stayed = true;
    host->number = reply->number;
    host->base = now + reply->base_offset_ms;
}

static void restart_host(host_t *host)
{
    host->id[0]++;
    host->was_member = false;
    host->has_stayed = false;
    host->is_greeted = false;
    host->number = RLR_MESSAGE_NO_NUMBER;
}

static uint64_t pick_host(compare_t *compare)
{
    if (compare->stopping > 0) {
        return (compare->stopping - 1) / 2;
    }
    return compare->calm > 0
        ? compare->calm % MEMBERS
        : pick(compare, pick(compare, 9) ? MEMBERS : HOSTS);
}

/* The kind of the next call: 0 is hello, 1 a report. */
static uint64_t pick_kind(compare_t *compare, const host_t *host)
{
    if (compare->stopping > 0) {
        return compare->stopping % 2 == 1 ? 2 : 0;
    }
    if (compare->calm > 0) {
        return host->is_greeted ? 2 : 0;
    }
    return pick(compare, 12);
}

/* The group's, and now and then another one. */
static void set_config(compare_t *compare, rlr_message_call_t *call)
{
    bool is_wrong = compare->calm == 0 && compare->stopping == 0
        && pick(compare, 100) == 0;

    call->members = MEMBERS - (compare->config + is_wrong) % 2;
    call->share_ms = (compare->config + is_wrong) % 3 == 2 ? 5000 : 30000;
}

/* All hosts have left: they start with another configuration, or after a pause
 * with the same, which is longer than an interval or not. */
static void stopped(compare_t *compare)
{
    if (pick(compare, 2) == 0) {
        compare->config++;
        return;
    }
    for (int i = 0; i < HOSTS; i++) {
        restart_host(&compare->hosts[i]);
    }
    compare->now_ms += pick(compare, pick(compare, 2) ? 5000 : 30000);
    compare->calm = CALM_CALLS;
}

static bool call_once(compare_t *compare, apr_pool_t *pool)
{
    uint64_t number = pick_host(compare);
    host_t *host = &compare->hosts[number];
    int64_t now = (int64_t)compare->now_ms;
    rlr_message_item_t items[ITEMS];
    rlr_message_mark_t mark = {{0}, 2, 4000};
    rlr_message_reply_t reply;
    uint64_t kind = pick_kind(compare, host);
    rlr_message_call_t call = {
        .kind = RLR_MESSAGE_HEARTBEAT,
        .latest_ms = compare->now_ms + 200,
        .number = host->number,
        .base_offset_ms = host->base - now,
        .joined_offset_ms = host->joined - now,
        .items = items,
        .item_count = ITEMS,
    };

    memcpy(call.id, host->id, sizeof(call.id));
    call.flags = pick_flags(compare, host) | pick_leave(compare);
    if ((call.flags & RLR_MESSAGE_LEAVE) != 0 && pick(compare, 4) > 0) {
        call.item_count = 0;
    }
    fill_items(compare, host, items);
    set_config(compare, &call);
    if (kind <= 1) {
        call.kind = kind == 0 ? RLR_MESSAGE_HELLO : RLR_MESSAGE_REPORT;
        call.item_count = 0;
        call.marks = &mark;
        call.mark_count = kind == 1;
    }
    if (compare->calm == 0 && compare->stopping == 0
        && pick(compare, 30) == 0) {
        call.latest_ms = compare->now_ms - 1;
    }
    if (!send_both(compare, host, &call, &reply, pool)) {
        return false;
    }
    learn(compare, host, &call, &reply);
    host->is_greeted = true;
    if ((call.flags & RLR_MESSAGE_LEAVE) != 0 && pick(compare, 4) > 0) {
        restart_host(host);
    }
    compare->calm -= compare->calm > 0;
    if (compare->stopping > 0 && --compare->stopping == 0) {
        stopped(compare);
    }
    return true;
}

/* All data is lost. */
static void lose(compare_t *compare)
{
    run(compare, "DEL rlr:{5}");
    group_store_empty(compare->store);
}

/* Time passes; sometimes a host restarts or the data is lost. */
static void pass(compare_t *compare)
{
    static const uint64_t most[] = {30, 30, 30, 30, 400, 3000, 20000};
    uint64_t event = pick(compare, 3000);
    char command[64];

    compare->now_ms += compare->calm > 0 || compare->stopping > 0
        ? CALM_MS
        : pick(compare, most[pick(compare, 7)]);
    if (compare->calm > 0 || compare->stopping > 0) {
        event = UINT64_MAX;
    }
    if (event < 10 && pick(compare, 3) == 0) {
        compare->now_ms += 70000;
    }
    if (event == 1) {
        lose(compare);
    }
    if (event == 2) {
        run(compare, "DEBUG CHANGE-REPL-ID");
        group_store_restart(compare->store, ++compare->server);
    }
    if (event >= 3 && event <= 5) {
        restart_host(&compare->hosts[pick(compare, HOSTS)]);
    }
    if (event == 6) {
        for (int i = 0; i < HOSTS; i++) {
            restart_host(&compare->hosts[i]);
        }
        lose(compare);
        compare->calm = CALM_CALLS;
    }
    if (event >= 8 && event <= 10) {
        compare->stopping = STOP_CALLS;
    }
    snprintf(command, sizeof(command), "SET clock %" PRIu64, compare->now_ms);
    run(compare, command);
}

int main(int argc, char **argv)
{
    compare_t compare = {.now_ms = 1700000000000,
                         .server = 1,
                         .seed = strtoull(argv[2], NULL, 10)
                             * 0x9e3779b97f4a7c15U,
                         .calm = CALM_CALLS};
    uint64_t calls = strtoull(argv[3], NULL, 10);
    apr_pool_t *pool;
    uint64_t i;

    apr_initialize();
    apr_pool_create(&pool, NULL);
    compare.redis = redisConnect("127.0.0.1", (int)strtol(argv[1], NULL, 10));
    compare.store = group_store_make(1, 0);
    for (int host = 0; host < HOSTS; host++) {
        compare.hosts[host].id[1] = (unsigned char)host;
        compare.hosts[host].number = RLR_MESSAGE_NO_NUMBER;
    }
    run(&compare, "FLUSHALL");
    load(&compare);
    for (i = 0; i < calls; i++) {
        pass(&compare);
        if (!call_once(&compare, pool)) {
            break;
        }
        apr_pool_clear(pool);
    }
    printf("%" PRIu64 " of %" PRIu64 " calls agree, %" PRIu64
           " granted, %" PRIu64 " in complete epochs, %" PRIu64
           " left, %" PRIu64 " refused, %" PRIu64
           " granted after changes of the configuration, %" PRIu64
           " epochs ended by the clock\n",
           i, calls, compare.granted, compare.completed, compare.left,
           compare.other, compare.followed, compare.set);
    group_store_drop(compare.store);
    redisFree(compare.redis);
    apr_terminate();
    return i == calls ? 0 : 1;
}
