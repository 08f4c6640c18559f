/* SPDX-License-Identifier: Apache-2.0 */
/* The weight of a run: an estimate of the memory that its JSON trees take. */
#ifndef AGENT_RUNNER_WEIGHT_H
#define AGENT_RUNNER_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "core/error.h"

/* The largest state as a tree in memory (core/scan.h). 7 MiB of messages of
 * one letter each take 200 MB, 7 MiB of {} 1.9 GB. */
#define RUNNER_STATE_WEIGHT_MAX ((size_t)256 * 1024 * 1024)

/* A run of at most this weight never waits for memory. */
#define RUNNER_WEIGHT_SMALL ((size_t)1024 * 1024)

/* The bytes by which the tree of the messages' text is larger than the messages
 * in memory, where the arguments of calls may be raw (base/raw.h). Takes time
 * linear in the messages. */
size_t runner_weight_excess(json_object *messages);

/* The weight of a line, in bytes. */
typedef struct runner_weight_t {
    /* The memory of the tree of the line. */
    size_t line;
    /* The most memory that the state takes once the input is applied; 0 for any
     * other message. The part of it that stands for the thread's state, which
     * is read later. */
    size_t begun;
    size_t state;
    /* The most text that the state has then. */
    size_t text;
} runner_weight_t;

/* Scans a line (core/json.h, agent_json_scan) and estimates its weight. Errors:
 * as there. Reads the input of a large start a second time. */
apr_status_t runner_weight_estimate(runner_weight_t *weight, const char *text,
                                    size_t length, agent_error_t **err,
                                    apr_pool_t *pool);

#endif
