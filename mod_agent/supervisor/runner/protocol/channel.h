/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a checkpoint in the notation of the runner protocol, channel by
 * channel (../../../runners/PROTOCOL.md, "Values by difference"). */
#ifndef AGENT_SUPERVISOR_RUNNER_CHANNEL_H
#define AGENT_SUPERVISOR_RUNNER_CHANNEL_H

#include <stdbool.h>

#include "../../../core/raw.h"

typedef enum agent_channel_kind_t {
    AGENT_CHANNEL_WRONG, /* $list or $same with a value of another type */
    AGENT_CHANNEL_VALUE,
    AGENT_CHANNEL_ARRAY, /* a whole list */
    AGENT_CHANNEL_LIST,  /* the first elements of the parent's, then others */
    AGENT_CHANNEL_SAME   /* as in the parent */
} agent_channel_kind_t;

/* Borrowed from the text of the values. */
typedef struct agent_channel_t {
    agent_member_t member;
    agent_channel_kind_t kind;
    /* LIST: elements of the parent's. */
    apr_int64_t keep;
    /* ARRAY, LIST: an array with the elements; VALUE: the value. */
    agent_raw_t content;
} agent_channel_t;

/* Finds the next channel. *at is the first byte of the values, an object that
 * has passed the scan (core/scan.h), in the first call. False at the end. */
bool agent_channel_next(agent_channel_t *channel, const char **at);

#endif
