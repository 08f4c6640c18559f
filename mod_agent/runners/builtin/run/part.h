/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a state, which are results of replies (runners/PROTOCOL.md).
 * Their messages stay text: of each one object is made, which is parsed when
 * its members are needed (message/lazy.h).
 */
#ifndef AGENT_RUNNER_PART_H
#define AGENT_RUNNER_PART_H

#include "core/error.h"
#include "state.h"

/*
 * Reads a line that has passed the scan (core/json.h), a reply with stored
 * messages in the lists of its part. Time and memory are linear in the line.
 * Errors and ownership: as of agent_json_parse_scanned().
 */
apr_status_t runner_part_read_line(json_object **line, const char *text,
                                   size_t length, agent_error_t **err,
                                   apr_pool_t *pool);

/* Adds a part, the result of a reply, to the state of a run, which shares its
 * values; false when it is not one. */
bool runner_part_add(runner_run_t *run, json_object *result);

#endif
