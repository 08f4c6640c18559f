/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the state by clients' updates. */
#ifndef AGENT_RUNNER_CHANGE_H
#define AGENT_RUNNER_CHANGE_H

#include "state.h"

/* The result of an update to the messages of the state, one reference. */
typedef struct runner_change_t {
    /* All of them; NULL: those of added are appended. */
    json_object *merged;
    json_object *added;
} runner_change_t;

/* Reads an update that is an object, or pairs [[channel, value], ..], whose
 * messages follow each other; any other value is *update as it is, which is in
 * pool. APR_EGENERAL: *problem is set. */
apr_status_t runner_change_read_pairs(json_object **update, json_object *given,
                                      runner_problem_t **problem,
                                      apr_pool_t *pool);

/* Reads the messages of update into *change, which is zeroed. An update without
 * messages changes nothing. Where it only appends, the state is not read.
 * APR_EGENERAL: *problem is set. */
apr_status_t runner_change_read(runner_change_t *change, runner_run_t *run,
                                json_object *update,
                                runner_problem_t **problem);

/* Applies what was read, and takes its reference. */
void runner_change_apply(runner_run_t *run, const runner_change_t *change);

/* Reads `goto` of a command: one node, by name or as {node}, or an array of
 * one. */
apr_status_t runner_change_read_goto(runner_node_t *node, json_object *given,
                                     runner_problem_t **problem,
                                     apr_pool_t *pool);

/* Guesses the node that wrote the state before run->next. */
runner_node_t runner_change_guess_node(runner_run_t *run);

#endif
