/* SPDX-License-Identifier: Apache-2.0 */
/* Decides on calls, replies and the share of a host that is cut off. Takes the
 * time as an argument and never blocks. */
#include "member.h"

#include <string.h>

#include "period.h"

void rlr_member_init(rlr_member_t *member)
{
    memset(member, 0, sizeof(*member));
    member->number = RLR_MESSAGE_NO_NUMBER;
}

rlr_message_kind_t rlr_member_next(const rlr_member_t *member,
                                   bool *is_exclusive, uint64_t now_ms)
{
    /* Another first heartbeat would count as the return of the host. */
    *is_exclusive = now_ms >= member->heartbeat_until_ms
        || !member->is_confirmed;
    if (now_ms >= member->heartbeat_until_ms) {
        return RLR_MESSAGE_HELLO;
    }
    return member->is_reporting ? RLR_MESSAGE_REPORT : RLR_MESSAGE_HEARTBEAT;
}

void rlr_member_recover(rlr_member_t *member, uint64_t counted_until_ms)
{
    uint32_t generation = member->generation + 1;

    rlr_member_init(member);
    member->generation = generation;
    member->was_member = true;
    member->has_used_share = true;
    member->lost_until_ms = counted_until_ms;
    member->share_until_ms = counted_until_ms;
}

void rlr_member_change_table(rlr_member_t *member)
{
    if (member->share_until_ms > member->share_from_ms) {
        member->share_from_ms = member->share_until_ms;
    }
}

void rlr_member_leave(rlr_member_t *member, rlr_member_t *stopped)
{
    uint32_t generation = member->generation + 1;

    *stopped = *member;
    /* A host that its epoch has refused, for another configuration, was
     * connected to no other one since. */
    stopped->is_confirmed = member->is_confirmed
        || (member->number != RLR_MESSAGE_NO_NUMBER && !member->is_reporting
            && !member->is_attesting);
    rlr_member_init(member);
    member->generation = generation;
    member->has_left = true;
}

/* ---- Calls ---- */

/* Whether the number is one of a group of that many hosts, with that time: a
 * reload may have changed them. */
static bool has_number(const rlr_member_t *member,
                       const rlr_member_config_t *config)
{
    return member->number != RLR_MESSAGE_NO_NUMBER
        && member->members == config->members
        && member->share_ms == config->share_ms;
}

/* Whether no store can have given the number to another host that may use its
 * share, or be settled with it. */
static bool may_bring(const rlr_member_t *member,
                      const rlr_member_config_t *config, uint64_t now_ms)
{
    uint64_t share_ms = config->share_ms - rlr_period_drift(config->share_ms);

    return has_number(member, config) && member->is_entitled
        && now_ms < member->confirmed_ms + rlr_period_bring(share_ms);
}

/* Whether the host takes part as one that has just been started: it was never a
 * member with this M and S, or all that it had as one has ended. Of a process
 * that died without a number nothing is known. */
static bool is_new(const rlr_member_t *member,
                   const rlr_member_config_t *config, uint64_t now_ms)
{
    uint64_t end_ms = rlr_period_end(config->share_ms);

    return !member->was_member
        || (member->number != RLR_MESSAGE_NO_NUMBER
            && (!has_number(member, config)
                || now_ms > member->confirmed_ms + end_ms
                        + rlr_period_drift(end_ms)));
}

static uint32_t get_flags(const rlr_member_t *member,
                          const rlr_member_config_t *config, uint64_t now_ms)
{
    uint32_t flags = is_new(member, config, now_ms) ? RLR_MESSAGE_NEW : 0;

    if (member->is_confirmed) {
        flags |= RLR_MESSAGE_STAYED;
    }
    if (may_bring(member, config, now_ms)) {
        flags |= RLR_MESSAGE_BRING;
    }

    if (member->has_used_share) {
        flags |= RLR_MESSAGE_USED;
    }
    if (member->is_clock_set) {
        flags |= RLR_MESSAGE_CLOCK;
    }
    if (member->is_attesting && now_ms < member->attest_until_ms
        && now_ms >= member->share_until_ms
        && now_ms >= member->lost_until_ms) {
        flags |= RLR_MESSAGE_ATTEST;
    }
    return flags;
}

/* How much a bound may have changed when a reply comes at that time: both calls
 * were executed at most RLR_PERIOD_CALL_MS before their reply came. */
static int64_t get_change(const rlr_member_bound_t *bound, uint64_t now_ms)
{
    uint64_t elapsed_ms = now_ms > bound->at_ms ? now_ms - bound->at_ms : 0;

    return (int64_t)rlr_period_drift(elapsed_ms + RLR_PERIOD_CALL_MS);
}

/* The store's clock is not before this at that time. */
static uint64_t get_store_ms(const rlr_member_t *member, uint64_t now_ms)
{
    int64_t ms = (int64_t)now_ms + member->least.ms
        - get_change(&member->least, now_ms);

    return member->knows_clock && ms > 0 ? (uint64_t)ms : 0;
}

void rlr_member_fill(rlr_message_call_t *call, const rlr_member_t *member,
                     const rlr_member_config_t *config, rlr_message_kind_t kind,
                     uint64_t now_ms)
{
    memset(call, 0, sizeof(*call));
    call->kind = kind;
    memcpy(call->id, config->id, sizeof(call->id));
    call->name = config->name;
    memcpy(call->epoch, member->epoch, sizeof(call->epoch));
    call->latest_ms = get_store_ms(member, now_ms) + RLR_PERIOD_CALL_MS;
    call->members = config->members;
    call->share_ms = config->share_ms;
    call->flags = get_flags(member, config, now_ms);
    call->number = member->number;
    call->base_offset_ms = member->base_ms - (int64_t)now_ms;
    call->joined_offset_ms = member->joined_ms - (int64_t)now_ms;
}

void rlr_member_reported(rlr_member_t *member, uint32_t generation)
{
    if (member->generation == generation) {
        member->is_reporting = false;
        member->is_attesting = true;
    }
}

/* ---- Replies ---- */

/* The store has lost its data, is another server, or has another clock: leases
 * of the old epoch are used up to their end, and none is accepted after the
 * report. */
static void change_epoch(rlr_member_t *member, const char *epoch)
{
    if (member->is_confirmed) {
        member->attest_until_ms = member->confirmed_ms + RLR_PERIOD_REPLACE_MS
            - RLR_PERIOD_HEARTBEAT_MS;
    }
    member->generation++;
    memcpy(member->epoch, epoch, sizeof(member->epoch));
    member->is_confirmed = false;
    member->is_attesting = false;
    member->is_reporting = member->number != RLR_MESSAGE_NO_NUMBER;
    member->knows_clock = false;
    member->is_clock_set = false;
    /* Not sent to the new epoch with the time of the old one. */
    member->heartbeat_until_ms = 0;
}

/* Bounds widen by the same part of the time that passes, so that the tighter
 * one of two is so at any time: it is kept as it is, since rounding its age up
 * with each reply would hide a clock that is corrected too fast. In 512ths of a
 * millisecond. */
static bool is_tighter(const rlr_member_bound_t *bound,
                       const rlr_member_bound_t *known, int64_t sign)
{
    return sign * (bound->ms - known->ms) * RLR_PERIOD_DRIFT_PART
        + (int64_t)(bound->at_ms - known->at_ms)
        > 0;
}

/* Takes the time of the reply, read between two times of the host; false: the
 * clock was set since the replies before it. Leases and marks of the epoch have
 * times of the former clock. */
static bool take_clock(rlr_member_t *member, const rlr_message_reply_t *reply,
                       uint64_t sent_ms, uint64_t received_ms)
{
    rlr_member_bound_t least = {(int64_t)(reply->now_ms - received_ms),
                                received_ms};
    rlr_member_bound_t most = {(int64_t)(reply->now_ms + 1 - sent_ms),
                               received_ms};
    int64_t known_least = member->least.ms
        - get_change(&member->least, received_ms);
    int64_t known_most = member->most.ms
        + get_change(&member->most, received_ms);
    bool is_set = member->knows_clock
        && (most.ms < known_least || least.ms > known_most);

    if (!member->knows_clock || is_set
        || is_tighter(&least, &member->least, 1)) {
        member->least = least;
    }
    if (!member->knows_clock || is_set
        || is_tighter(&most, &member->most, -1)) {
        member->most = most;
    }
    member->knows_clock = true;
    return !is_set;
}

static void take_time(rlr_member_t *member, uint64_t sent_ms)
{
    if (sent_ms >= member->answered_ms) {
        member->answered_ms = sent_ms;
        member->heartbeat_until_ms = sent_ms + RLR_PERIOD_HEARTBEAT_MS;
    }
}

/* Whether the base of an earlier epoch remains the host's after the heartbeat:
 * the epoch continues from it once it is complete, and so does another one, if
 * the data are lost before. */
static bool keeps_base(const rlr_member_t *member,
                       const rlr_message_call_t *call,
                       const rlr_message_reply_t *reply)
{
    uint32_t attests = RLR_MESSAGE_ATTEST | RLR_MESSAGE_BRING;

    return !reply->complete && reply->number == call->number
        && (call->flags & RLR_MESSAGE_USED) == 0
        && ((call->flags & attests) == attests
            || ((call->flags & RLR_MESSAGE_STAYED) != 0 && member->keeps_base));
}

/* The reply to a heartbeat. */
static void confirm(rlr_member_t *member, const rlr_message_call_t *call,
                    const rlr_message_reply_t *reply, uint64_t sent_ms,
                    uint64_t received_ms)
{
    member->was_member = true;
    member->number = reply->number;
    member->members = call->members;
    member->share_ms = call->share_ms;
    member->keeps_base = keeps_base(member, call, reply);
    if (!member->keeps_base) {
        member->base_ms = (int64_t)received_ms + reply->base_offset_ms;
    }
    member->joined_ms = (int64_t)received_ms + reply->joined_offset_ms;
    member->is_confirmed = true;
    member->is_complete = reply->complete;
    member->is_entitled = reply->base_offset_ms <= 0;
    member->has_used_share = false;
    member->is_attesting = false;
    if (sent_ms > member->confirmed_ms) {
        member->confirmed_ms = sent_ms;
    }
}

bool rlr_member_answer(rlr_member_t *member, const rlr_message_call_t *call,
                       const rlr_message_reply_t *reply, uint32_t generation,
                       uint64_t sent_ms, uint64_t received_ms)
{
    bool is_other;

    if (generation != member->generation || member->has_left
        || reply->status == RLR_MESSAGE_FAILED
        || received_ms > sent_ms + RLR_PERIOD_CALL_MS) {
        return false;
    }
    is_other = memcmp(member->epoch, reply->epoch, sizeof(member->epoch)) != 0;
    if (is_other) {
        change_epoch(member, reply->epoch);
    }
    if (!take_clock(member, reply, sent_ms, received_ms)) {
        member->is_clock_set = true;
        member->generation++;
    }
    if (reply->status == RLR_MESSAGE_OTHER) {
        member->is_confirmed = false;
    }
    if (member->is_clock_set || reply->status == RLR_MESSAGE_OTHER
        || reply->status == RLR_MESSAGE_LATE) {
        member->heartbeat_until_ms = 0;
        return false;
    }
    if (!is_other || call->kind == RLR_MESSAGE_HELLO) {
        take_time(member, sent_ms);
    }
    if (is_other || call->kind != RLR_MESSAGE_HEARTBEAT) {
        return false;
    }
    if (reply->status == RLR_MESSAGE_FULL) {
        member->is_confirmed = false;
        return false;
    }
    confirm(member, call, reply, sent_ms, received_ms);
    return true;
}

/* ---- The share ---- */

/* From when on the host admits its share of the key, if no call is answered;
 * UINT64_MAX: never. */
static uint64_t find_share(const rlr_member_t *member,
                           const rlr_member_config_t *config,
                           const unsigned char *key, rlr_limit_t limit,
                           uint64_t now_ms)
{
    uint64_t share_ms = config->share_ms;
    uint64_t from_ms = member->answered_ms
        + rlr_period_cut_off(limit.interval_sec);
    uint64_t latest_ms;

    if (from_ms < member->share_from_ms) {
        from_ms = member->share_from_ms;
    }
    latest_ms = from_ms > now_ms ? from_ms : now_ms;

    /* The base is not after the last heartbeat, and W is longer than T. */
    if (!has_number(member, config) || !member->is_entitled
        || !rlr_period_has_share(limit.interval_sec, share_ms)
        || latest_ms + rlr_period_drift(share_ms)
            >= member->confirmed_ms + share_ms
        || rlr_member_share(member->number, limit.count, config->members, key)
            == 0) {
        return UINT64_MAX;
    }
    return from_ms;
}

uint32_t rlr_member_usable_share(const rlr_member_t *member,
                                 const rlr_member_config_t *config,
                                 const unsigned char *key, rlr_limit_t limit,
                                 uint64_t now_ms)
{
    return find_share(member, config, key, limit, now_ms) > now_ms
        ? 0
        : rlr_member_share(member->number, limit.count, config->members, key);
}

uint64_t rlr_member_share_wait(const rlr_member_t *member,
                               const rlr_member_config_t *config,
                               const unsigned char *key, rlr_limit_t limit,
                               uint64_t now_ms)
{
    uint64_t from_ms = find_share(member, config, key, limit, now_ms);

    if (now_ms < member->heartbeat_until_ms || from_ms == UINT64_MAX) {
        return 0;
    }
    return from_ms > now_ms ? from_ms - now_ms : 1;
}

void rlr_member_use_share(rlr_member_t *member, uint32_t interval_sec,
                          uint64_t now_ms)
{
    uint64_t until = now_ms
        + (uint64_t)rlr_period_share_sec(interval_sec) * 1000;

    member->has_used_share = true;
    if (until > member->share_until_ms) {
        member->share_until_ms = until;
    }
}
