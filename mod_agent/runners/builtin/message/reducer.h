/* SPDX-License-Identifier: Apache-2.0 */
/* The reducer of the channel `messages`: how an update changes the list. */
#ifndef AGENT_RUNNER_REDUCER_H
#define AGENT_RUNNER_REDUCER_H

#include <stdbool.h>

#include <json-c/json.h>

#include "runners/builtin/base/problem.h"

/* The most bytes of an update's messages as JSON once they have all fields; the
 * shortest message has 190 then. */
#define RUNNER_REDUCER_MAX ((size_t)7 * 1024 * 1024)

/* Whether an update can only append messages: none has an id. */
bool runner_reducer_only_appends(json_object *update);

/* Whether each message has an id and a type: such an update is appended without
 * reading the list. Takes time linear in the list. */
bool runner_reducer_is_complete(json_object *list);

/* Reads the messages of such an update; *added is an array, one reference.
 * Takes time linear in the update only. APR_EGENERAL: *problem is set. */
apr_status_t runner_reducer_read(json_object **added, json_object *update,
                                 runner_problem_t **problem, apr_pool_t *pool);

/*
 * Applies update, a message or an array of messages, to list, which may be
 * NULL. A message with the id of one in list replaces it, others are appended;
 * `remove` removes the message of that id, or all messages before it when the
 * id is "__remove_all__". *merged is one reference. APR_EGENERAL: *problem is
 * set.
 */
apr_status_t runner_reducer_apply(json_object **merged, json_object *list,
                                  json_object *update,
                                  runner_problem_t **problem, apr_pool_t *pool);

#endif
