/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of a model. A provider is two functions; it reports through
 * runner_call_text(), runner_call_begin_tool(), runner_call_args() and ends
 * the call once with runner_call_end(). A call that is not wanted any more ends
 * with its pool: what it holds outside, it holds by a cleanup of that pool.
 */
#ifndef AGENT_RUNNER_CALL_H
#define AGENT_RUNNER_CALL_H

#include "answer.h"
#include "core/clock.h"
#include "runners/builtin/graph.h"
#include "runners/builtin/http.h"

typedef struct runner_call_t runner_call_t;

typedef struct runner_provider_t {
    /* The word in the configuration. */
    const char *name;
    /* Whether a model name belongs to it. */
    bool is_named;
    /* Begins the call; it may be over when this returns. */
    void (*start)(runner_call_t *call);
    /* The time call->wake_at has come. */
    void (*wake)(runner_call_t *call);
} runner_provider_t;

/* What the model has just said, for those who watch it stream. */
typedef struct runner_delta_t {
    /* The new piece of text, or of a call's arguments. */
    const char *text;
    size_t length;
    /* The call it belongs to; NULL for text. */
    const runner_block_t *call;
    /* The call begins here: its id and name are new. */
    bool is_first;
} runner_delta_t;

struct runner_call_t {
    apr_pool_t *pool;
    const runner_graph_t *graph;
    const runner_model_t *model;
    runner_http_t *http;
    /* The conversation; borrowed until the call is over. */
    json_object *messages;
    /* For the log. */
    const char *run_id;
    runner_answer_t answer;
    /* Set when the call failed. */
    runner_problem_t *problem;
    bool is_over;
    /* When wake() is to be called (agent_clock_now()), or AGENT_CLOCK_NEVER. */
    apr_time_t wake_at;
    /* The provider's own. */
    void *state;
    /* So much of what was said waits for the supervisor that the model has to
     * wait too. */
    bool (*is_full)(void *baton);
    void (*on_delta)(void *baton, const runner_delta_t *delta);
    /* The model has something to say that is none of its answer; data is
     * borrowed. */
    void (*on_custom)(void *baton, json_object *data);
    /* is_over or wake_at has changed. */
    void (*on_change)(void *baton);
    void *baton;
};

/* The provider of that word, NULL when there is none. */
const runner_provider_t *runner_provider_find(const char *name);

/* The model said a piece of text; of a new or a running call of a tool. Once
 * call->answer.excess is set they do nothing, and begin_tool returns NULL. */
void runner_call_text(runner_call_t *call, const char *text, size_t length);
runner_block_t *runner_call_begin_tool(runner_call_t *call, int index,
                                       const char *id, const char *name);
void runner_call_args(runner_call_t *call, runner_block_t *block,
                      const char *text, size_t length);

/* The model says something beside its answer: an event of mode custom. */
void runner_call_custom(runner_call_t *call, json_object *data);

/* The call is over; it failed when call->problem is set. */
void runner_call_end(runner_call_t *call);

/* One provider each in demo.c, anthropic.c and openai.c. */
extern const runner_provider_t runner_provider_demo;
extern const runner_provider_t runner_provider_anthropic;
extern const runner_provider_t runner_provider_openai;

#endif
