/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of a model. A provider implements start and wake; it reports the
 * answer with runner_call_add_text(), runner_call_begin_tool() and
 * runner_call_add_args(), and ends the call once with runner_call_end(). A call
 * is cancelled by destroying its pool; a cleanup of the pool releases what else
 * it uses.
 */
#ifndef AGENT_RUNNER_CALL_H
#define AGENT_RUNNER_CALL_H

#include "answer.h"
#include "runners/builtin/base/graph.h"
#include "runners/builtin/base/problem.h"
#include "runners/builtin/io/http.h"

typedef struct runner_call_t runner_call_t;

typedef struct runner_provider_t {
    /* The word in the configuration. */
    const char *name;
    /* Whether the configuration must name a model of the provider. */
    bool is_named;
    /* Begins the call, which may be over on return. */
    void (*start)(runner_call_t *call);
    /* Called when call->wake_at is due. */
    void (*wake)(runner_call_t *call);
} runner_provider_t;

/* A new piece of the answer. */
typedef struct runner_delta_t {
    /* The piece: text, or JSON text of the arguments of a tool call. */
    const char *text;
    size_t length;
    /* The tool call; NULL for text. */
    const runner_block_t *call;
    /* The first piece of the tool call, which has its id and name. */
    bool is_first;
} runner_delta_t;

/* Counts of the first messages of a conversation. Kept with the state of the
 * thread, so that a call reads only the new ones. */
typedef struct runner_tally_t {
    size_t messages;
    int64_t words;
    int humans;
} runner_tally_t;

struct runner_call_t {
    apr_pool_t *pool;
    const runner_graph_t *graph;
    const runner_model_t *model;
    runner_http_t *http;
    runner_schedule_run_t *transfers;
    /* The conversation; borrowed until the call is over. */
    json_object *messages;
    /* Of at most as many messages; may be brought up to date. */
    runner_tally_t *tally;
    /* For the log. */
    const char *run_id;
    runner_answer_t answer;
    /* NULL unless the call failed. */
    runner_problem_t *problem;
    bool is_over;
    /* When wake() is due (core/clock.h), or AGENT_CLOCK_NEVER. */
    apr_time_t wake_at;
    /* Private to the provider. */
    void *state;
    /* True while no more of the answer may be read. */
    bool (*is_full)(void *baton);
    void (*on_delta)(void *baton, const runner_delta_t *delta);
    /* An event of mode custom; data is borrowed. */
    void (*on_custom)(void *baton, json_object *data);
    /* is_over or wake_at has changed. */
    void (*on_change)(void *baton);
    void *baton;
};

/* Adds a piece of text to the answer and reports it. Does nothing once
 * call->answer.excess is set. */
void runner_call_add_text(runner_call_t *call, const char *text, size_t length);
/* Begins a tool call in the same way and returns it; NULL once excess is set.
 */
runner_block_t *runner_call_begin_tool(runner_call_t *call, int index,
                                       const char *id, const char *name);
/* Adds a piece of a tool call's arguments in the same way. */
void runner_call_add_args(runner_call_t *call, runner_block_t *block,
                          const char *text, size_t length);

/* Reports an event of mode custom, which is not a part of the answer. */
void runner_call_send_custom(runner_call_t *call, json_object *data);

/* Ends the call; it failed when call->problem is set. */
void runner_call_end(runner_call_t *call);

#endif
