/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a state, which are results of replies (runners/PROTOCOL.md).
 * They stay text: of a message one object is made, which is parsed when its
 * members are needed (message/stored.h).
 */
#ifndef AGENT_RUNNER_PART_H
#define AGENT_RUNNER_PART_H

#include "core/error.h"
#include "core/raw.h"
#include "state.h"

/*
 * Parses a line that has passed the scan (core/json.h). The result of a reply
 * is left out of *line, which has null in its place, and returned as text of
 * the line; *result has length 0 for any other line. Errors and ownership: as
 * of agent_json_parse_scanned().
 */
apr_status_t runner_part_read_line(json_object **line, agent_raw_t *result,
                                   const char *text, size_t length,
                                   agent_error_t **err, apr_pool_t *pool);

/* Adds a part to the state of a run; false when it is not one. Time and memory
 * are linear in its text. */
bool runner_part_add(runner_run_t *run, agent_raw_t result);

#endif
