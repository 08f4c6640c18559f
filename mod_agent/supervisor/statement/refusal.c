/* SPDX-License-Identifier: Apache-2.0 */
/* Why output cannot be stored; see refusal.h. */
#include "refusal.h"

#include <stddef.h>

static const agent_refusal_t invalid = {
    "InvalidOutputError",
    "The run's output cannot be stored; the server's error "
    "log says why (AGT0313)."};
static const agent_refusal_t too_long = {
    "InvalidOutputError",
    "The state of the run would have more than 34 MiB: remove what it does not "
    "need."};
static const agent_refusal_t too_many_names = {
    "InvalidOutputError",
    "The state of the run would have more than 1,024 channels, or more than "
    "64 KB of names of channels: keep such data in one channel."};
static const agent_refusal_t too_many_parts = {
    "InvalidOutputError",
    "The lists of the run's state would have more than 2,048 parts, since they "
    "were continued so often at an earlier element: write the longest ones "
    "anew, or continue an earlier checkpoint."};
const agent_refusal_t agent_refusal_crashed = {
    "InvalidOutputError",
    "The database crashed each time when the output was stored; the server's "
    "error log says when (AGT0311)."};
static const agent_refusal_t no_resources = {
    "InvalidOutputError",
    "The database had too little memory or disk space each time when the "
    "output was stored; the server's error log says when (AGT0313)."};
static const agent_refusal_t too_slow = {
    "OutputTimeoutError", "The run's output could not be stored in time."};

const agent_refusal_t *agent_refusal_find(agent_failure_t failure)
{
    switch (failure) {
    case AGENT_FAILURE_DATA:
        return &invalid;
    case AGENT_FAILURE_STATE_LENGTH:
        return &too_long;
    case AGENT_FAILURE_STATE_NAMES:
        return &too_many_names;
    case AGENT_FAILURE_STATE_PARTS:
        return &too_many_parts;
    default:
        return NULL;
    }
}

const agent_refusal_t *agent_refusal_find_last(agent_failure_t failure)
{
    switch (failure) {
    case AGENT_FAILURE_OTHER:
        return &invalid;
    case AGENT_FAILURE_SHORTAGE:
        return &no_resources;
    default:
        return &too_slow;
    }
}
