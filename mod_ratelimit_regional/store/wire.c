/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes calls and decodes replies. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <hiredis/hiredis.h>

/* Arguments before the items: EVALSHA, the script, the number of keys, the
 * key, and those of every call. */
#define HEAD 16

static void add(rlr_wire_command_t *command, const void *bytes, size_t length)
{
    command->texts[command->count] = bytes;
    command->lengths[command->count++] = length;
}

static void add_text(rlr_wire_command_t *command, const char *text)
{
    add(command, text, strlen(text));
}

static void add_number(rlr_wire_command_t *command, apr_int64_t number,
                       apr_pool_t *pool)
{
    /* Bounded: a text per argument. */
    add_text(command, apr_psprintf(pool, "%" APR_INT64_T_FMT, number));
}

static void add_items(rlr_wire_command_t *command,
                      const rlr_message_call_t *call, apr_pool_t *pool)
{
    for (uint32_t i = 0; i < call->item_count; i++) {
        const rlr_message_item_t *item = &call->items[i];

        add(command, item->key, sizeof(item->key));
        if (call->kind == RLR_MESSAGE_RESET) {
            add_number(command, (apr_int64_t)item->tag, pool);
            continue;
        }
        add_number(command, item->limit.count, pool);
        add_number(command, item->limit.interval_sec, pool);
        add_number(command, item->wanted, pool);
        add_number(command, item->waiting, pool);
        add_number(command, (apr_int64_t)item->tag, pool);
        add_number(command, (apr_int64_t)item->closed_tag, pool);
        add_number(command, item->closed_used, pool);
    }
    for (uint32_t i = 0; i < call->mark_count; i++) {
        const rlr_message_mark_t *mark = &call->marks[i];

        add(command, mark->key, sizeof(mark->key));
        add_number(command, mark->amount, pool);
        add_number(command, (apr_int64_t)mark->expires_in_ms, pool);
    }
}

void rlr_wire_encode(rlr_wire_command_t *command,
                     const rlr_message_call_t *call, uint32_t partition,
                     const char *sha, apr_pool_t *pool)
{
    static const char *const kinds[] = {"hello", "report",  "heartbeat",
                                        "reset", "publish", "read"};
    size_t most = HEAD + 8 * (size_t)call->item_count
        + 3 * (size_t)call->mark_count;

    command->count = 0;
    command->texts = apr_palloc(pool, most * sizeof(*command->texts));
    command->lengths = apr_palloc(pool, most * sizeof(*command->lengths));
    add_text(command, "EVALSHA");
    add_text(command, sha);
    add_text(command, "1");
    add_text(command, apr_psprintf(pool, "rlr:{%u}", partition));
    add_text(command, kinds[call->kind]);
    add(command, call->id, sizeof(call->id));
    add(command, call->epoch, sizeof(call->epoch));
    add_number(command, (apr_int64_t)call->latest_ms, pool);
    add_number(command, call->members, pool);
    add_number(command, (apr_int64_t)call->share_ms, pool);
    add_number(command, call->flags, pool);
    add_number(command, call->number, pool);
    add_number(command, call->base_offset_ms, pool);
    add_number(command, call->joined_offset_ms, pool);
    add_text(command, call->name != NULL ? call->name : "");
    if (call->rules != NULL) {
        add_text(command, call->rules);
    }
    add_items(command, call, pool);
}

/* ---- Replies ---- */

static bool is_array(const redisReply *reply, size_t least)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements >= least;
}

static bool read_integer(int64_t *out, const redisReply *reply)
{
    *out = reply->integer;
    return reply->type == REDIS_REPLY_INTEGER;
}

static bool read_status(rlr_message_reply_t *reply, const redisReply *text)
{
    static const struct {
        const char *word;
        rlr_message_status_t status;
    } words[] = {{"ok", RLR_MESSAGE_OK},
                 {"late", RLR_MESSAGE_LATE},
                 {"full", RLR_MESSAGE_FULL},
                 {"other", RLR_MESSAGE_OTHER}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (text->type == REDIS_REPLY_STRING
            && strcmp(text->str, words[i].word) == 0) {
            reply->status = words[i].status;
            return true;
        }
    }
    return false;
}

/* The part of a reply to a heartbeat that is for operators. */
static bool read_group(rlr_message_group_t *group, const redisReply *head)
{
    int64_t missing;
    int64_t reserved;
    int64_t reserved_ms;

    if (head->elements < 12 || !read_integer(&missing, head->element[7])
        || !read_integer(&reserved, head->element[8])
        || !read_integer(&reserved_ms, head->element[9])
        || head->element[10]->type != REDIS_REPLY_STRING
        || !read_integer(&group->started_ms, head->element[11])) {
        return false;
    }
    group->missing = (uint32_t)missing;
    group->reserved = (uint32_t)reserved;
    group->reserved_ms = (uint64_t)reserved_ms;
    apr_cpystrn(group->names, head->element[10]->str, sizeof(group->names));
    return true;
}

static bool read_head(rlr_message_reply_t *reply, const redisReply *head)
{
    int64_t now_ms;
    int64_t number;
    int64_t complete;

    if (!is_array(head, 7) || !read_status(reply, head->element[0])
        || !read_integer(&now_ms, head->element[1])
        || head->element[2]->type != REDIS_REPLY_STRING
        || !read_integer(&number, head->element[3])
        || !read_integer(&reply->base_offset_ms, head->element[4])
        || !read_integer(&complete, head->element[5])
        || !read_integer(&reply->joined_offset_ms, head->element[6])) {
        return false;
    }
    reply->now_ms = (uint64_t)now_ms;
    reply->number = (int)number;
    reply->complete = complete != 0;
    memset(reply->epoch, 0, sizeof(reply->epoch));
    if (head->element[2]->len == sizeof(reply->epoch)) {
        memcpy(reply->epoch, head->element[2]->str, sizeof(reply->epoch));
    }
    memset(&reply->group, 0, sizeof(reply->group));
    return head->elements == 7 || read_group(&reply->group, head);
}

static bool read_grant(rlr_message_grant_t *grant, const redisReply *reply)
{
    int64_t granted;
    int64_t remaining;
    int64_t reset_ms;

    if (!is_array(reply, 4) || !read_integer(&granted, reply->element[0])
        || !read_integer(&grant->wait_ms, reply->element[1])
        || !read_integer(&remaining, reply->element[2])
        || !read_integer(&reset_ms, reply->element[3])) {
        return false;
    }
    grant->granted = (uint32_t)granted;
    grant->remaining = (uint32_t)remaining;
    grant->reset_ms = (uint32_t)reset_ms;
    return true;
}

static bool read_rules(rlr_message_rules_t *rules, const redisReply *reply)
{
    int64_t age_ms;

    if (!is_array(reply, 3) || !read_integer(&age_ms, reply->element[0])
        || reply->element[1]->type != REDIS_REPLY_STRING
        || reply->element[2]->type != REDIS_REPLY_STRING) {
        return false;
    }
    rules->age_ms = (uint64_t)age_ms;
    apr_cpystrn(rules->name, reply->element[1]->str, sizeof(rules->name));
    apr_cpystrn(rules->text, reply->element[2]->str, sizeof(rules->text));
    return true;
}

void rlr_wire_decode(rlr_message_reply_t *reply, uint32_t item_count,
                     const void *redis_reply, const char **error)
{
    const redisReply *all = redis_reply;
    bool is_read = is_array(all, 1) && read_head(reply, all->element[0]);

    *error = all->type == REDIS_REPLY_ERROR ? all->str : NULL;
    if (is_read && reply->status == RLR_MESSAGE_OK && item_count > 0) {
        is_read = all->elements == 1 + (size_t)item_count;
        for (uint32_t i = 0; is_read && i < item_count; i++) {
            is_read = read_grant(&reply->grants[i], all->element[1 + i]);
        }
    }
    if (is_read && reply->rules != NULL) {
        is_read = all->elements == 2
            && read_rules(reply->rules, all->element[1]);
    }
    if (!is_read) {
        reply->status = RLR_MESSAGE_FAILED;
    }
}
