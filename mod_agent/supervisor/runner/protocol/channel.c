/* SPDX-License-Identifier: Apache-2.0 */
/* Channels of the values of a checkpoint; see channel.h. */
#include "channel.h"

#include <string.h>

/* A list longer than this could not be counted in the database. */
#define MAX_DIGITS 9

/* A number without sign, fraction and exponent. */
static bool read_number(apr_int64_t *number, agent_raw_t value)
{
    apr_int64_t result = 0;

    if (value.length == 0 || value.length > MAX_DIGITS) {
        return false;
    }
    for (apr_size_t i = 0; i < value.length; i++) {
        if (value.text[i] < '0' || value.text[i] > '9') {
            return false;
        }
        result = result * 10 + (value.text[i] - '0');
    }
    *number = result;
    return true;
}

/* The last of equal members applies, as everywhere. */
static void read_list(agent_channel_t *channel, agent_raw_t list)
{
    agent_member_t member;
    const char *at = list.text;
    agent_raw_t keep = {NULL, 0};
    agent_raw_t items = {NULL, 0};

    if (agent_raw_kind(list) != AGENT_RAW_OBJECT) {
        return;
    }
    while (agent_raw_member_next(&member, &at)) {
        if (agent_raw_member_is(&member, "keep")) {
            keep = (agent_raw_t){member.value, member.value_length};
        }
        else if (agent_raw_member_is(&member, "items")) {
            items = (agent_raw_t){member.value, member.value_length};
        }
    }
    if (read_number(&channel->keep, keep)
        && agent_raw_kind(items) == AGENT_RAW_ARRAY) {
        channel->kind = AGENT_CHANNEL_LIST;
        channel->content = items;
    }
}

/* The value of the only member of an object, if that is one of the notation. */
static void read_only(agent_channel_t *channel, const agent_member_t *only)
{
    const agent_raw_t value = {only->value, only->value_length};

    if (agent_raw_member_is(only, "$value")) {
        channel->content = value;
        return;
    }
    channel->kind = AGENT_CHANNEL_WRONG;
    if (agent_raw_member_is(only, "$list")) {
        read_list(channel, value);
    }
    else if (value.length == 4 && memcmp(value.text, "true", 4) == 0) {
        channel->kind = AGENT_CHANNEL_SAME;
    }
}

static bool is_notation(const agent_member_t *member)
{
    /* A name may be written with escapes. */
    return (*member->key == '$' || *member->key == '\\')
        && (agent_raw_member_is(member, "$list")
            || agent_raw_member_is(member, "$same")
            || agent_raw_member_is(member, "$value"));
}

bool agent_channel_next(agent_channel_t *channel, const char **at)
{
    const char *inner;
    agent_member_t first;
    agent_member_t second;
    agent_raw_kind_t kind;

    if (!agent_raw_member_next(&channel->member, at)) {
        return false;
    }
    channel->content = (agent_raw_t){channel->member.value,
                                     channel->member.value_length};
    kind = agent_raw_kind(channel->content);
    channel->kind = kind == AGENT_RAW_ARRAY ? AGENT_CHANNEL_ARRAY
                                            : AGENT_CHANNEL_VALUE;
    channel->keep = 0;
    inner = channel->content.text;
    if (kind == AGENT_RAW_OBJECT && agent_raw_member_begin(&first, &inner)
        && is_notation(&first)) {
        inner = channel->content.text;
        agent_raw_member_next(&first, &inner);
        if (!agent_raw_member_begin(&second, &inner)) {
            read_only(channel, &first);
        }
    }
    return true;
}
