/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph of a run, between `start` and `end`:
 *
 *   __start__ -> agent -> (tool calls? tools -> agent) -> end
 *
 * A run over N nodes has N + 2 checkpoints: before the input, with the input,
 * and one after each node.
 */
#include "run.h"

#include "admission.h"
#include "begin.h"
#include "checkpoint.h"
#include "core/clock.h"
#include "core/json.h"
#include "load.h"
#include "metadata.h"
#include "runners/builtin/base/log.h"
#include "runners/builtin/base/value.h"
#include "stream.h"
#include "update.h"
#include "weight.h"

#define SUCCESS "success"
#define DRAINED "drained"
/* How often a paused answer that is not a transfer tries to continue. */
#define PAUSE_CHECK apr_time_from_msec(10)

static void wait_for(runner_run_t *run, apr_time_t when)
{
    run->wake_at = when;
}

static void enter_phase(runner_run_t *run, runner_phase_t phase)
{
    run->phase = phase;
    wait_for(run, 0);
}

static void count_pending(runner_run_t *run)
{
    size_t bytes = run->call ? run->call->answer.size : 0;

    runner_pending_set(run->pending, &run->pending_size,
                       run->jobs ? run->jobs->kept_size : bytes,
                       agent_clock_now());
}

static void leave_node(runner_run_t *run)
{
    run->call = NULL;
    run->jobs = NULL;
    count_pending(run);
    if (run->node_pool != NULL) {
        apr_pool_destroy(run->node_pool);
        run->node_pool = NULL;
    }
}

static void end_run(runner_run_t *run, const char *status,
                    const runner_problem_t *problem)
{
    if (problem != NULL) {
        runner_log_write(run->run_id, "%s: %s", problem->name,
                         problem->message);
    }
    runner_stream_end(run, status, problem);
    leave_node(run);
    enter_phase(run, RUNNER_PHASE_OVER);
}

static void fail_run(runner_run_t *run, const runner_problem_t *problem)
{
    end_run(run, "error", problem);
}

/* The state stays as it was before the failed node; another run may continue
 * the thread from there. */
static void fail_node(runner_run_t *run, runner_node_t node,
                      const runner_problem_t *problem)
{
    runner_checkpoint_report_task(run, node, problem->message);
    runner_stream_task_result(run, node, NULL, problem->message);
    fail_run(run, problem);
}

static json_object *get_messages(runner_run_t *run)
{
    return agent_json_get(run->values, "messages");
}

/* Appends the messages of a node to the state and saves a checkpoint; takes the
 * reference of messages. */
static void commit_node(runner_run_t *run, runner_node_t node,
                        json_object *messages, runner_node_t next)
{
    json_object *writes;

    if (!run->has_saved) {
        /* An earlier run may have failed here. */
        runner_checkpoint_report_task(run, node, NULL);
    }
    runner_stream_task_result(run, node, messages, NULL);
    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        json_object_array_add(
            get_messages(run),
            runner_value_share(json_object_array_get_idx(messages, i)));
    }
    run->last = node;
    run->next = next;
    writes = runner_value_wrap(runner_node_name(node),
                               runner_value_wrap("messages", messages));
    runner_checkpoint_save(run, "loop", writes);
}

static bool is_list_empty(json_object *message, const char *key)
{
    return json_object_array_length(agent_json_get(message, key)) == 0;
}

static void wake_run(void *baton)
{
    wait_for(baton, 0);
}

static bool is_paused(void *baton)
{
    runner_run_t *run = baton;

    count_pending(run);
    return runner_pending_is_paused(run->pending, &run->pending_size,
                                    agent_clock_now());
}

static bool is_full(void *baton)
{
    const runner_run_t *run = baton;

    return runner_wire_is_full(run->output.wire)
        || runner_admission_is_blocked(run) || is_paused(baton);
}

static void stream_delta(void *baton, const runner_delta_t *delta)
{
    count_pending(baton);
    runner_stream_delta(baton, delta);
}

static void stream_custom(void *baton, json_object *data)
{
    runner_stream_custom(baton, data);
}

static void stream_progress(void *baton, const runner_job_t *job,
                            json_object *data)
{
    runner_stream_progress(baton, job, data);
}

static void stream_job(void *baton, const runner_job_t *job)
{
    count_pending(baton);
    runner_stream_job(baton, job);
}

static void start_agent(runner_run_t *run)
{
    runner_call_t *call = apr_pcalloc(run->node_pool, sizeof(*call));

    call->pool = run->node_pool;
    call->graph = run->graph;
    call->model = &run->graph->model;
    call->http = run->http;
    call->transfers = &run->transfers;
    call->messages = get_messages(run);
    call->tally = &run->tally;
    call->run_id = run->run_id;
    call->wake_at = AGENT_CLOCK_NEVER;
    call->is_full = is_full;
    call->on_delta = stream_delta;
    call->on_custom = stream_custom;
    call->on_change = wake_run;
    call->baton = run;
    runner_answer_init(&call->answer, run->node_pool);
    call->answer.provider = call->model->provider->name;
    run->call = call;
    enter_phase(run, RUNNER_PHASE_AGENT);
    runner_stream_call(run);
    call->model->provider->start(call);
}

static void finish_agent(runner_run_t *run)
{
    json_object *message;
    bool has_calls;

    if (run->call->problem != NULL) {
        fail_node(run, RUNNER_NODE_AGENT, run->call->problem);
        return;
    }
    message = runner_answer_message(&run->call->answer, RUNNER_ANSWER_COMPLETE);
    has_calls = !is_list_empty(message, "tool_calls")
        || !is_list_empty(message, "invalid_tool_calls");
    commit_node(run, RUNNER_NODE_AGENT, runner_value_list_of(message),
                has_calls ? RUNNER_NODE_TOOLS : RUNNER_NODE_NONE);
    leave_node(run);
    enter_phase(run, RUNNER_PHASE_NEXT);
}

static void wait_for_model(runner_run_t *run)
{
    apr_time_t now = agent_clock_now();

    wait_for(run,
             run->call->wake_at <= now && is_paused(run) ? now + PAUSE_CHECK
                                                         : run->call->wake_at);
}

static void advance_agent(runner_run_t *run)
{
    runner_call_t *call = run->call;

    if (!call->is_over && call->wake_at <= agent_clock_now()) {
        call->wake_at = AGENT_CLOCK_NEVER;
        call->model->provider->wake(call);
    }
    if (call->is_over) {
        finish_agent(run);
        return;
    }
    wait_for_model(run);
}

static void start_tools(runner_run_t *run)
{
    runner_jobs_t *jobs = apr_pcalloc(run->node_pool, sizeof(*jobs));
    runner_problem_t *problem = NULL;

    jobs->pool = run->node_pool;
    jobs->graph = run->graph;
    jobs->http = run->http;
    jobs->transfers = &run->transfers;
    jobs->run_id = run->run_id;
    jobs->thread_id = run->thread_id;
    jobs->on_end = wake_run;
    jobs->on_change = stream_job;
    jobs->on_progress = stream_progress;
    jobs->is_full = is_full;
    jobs->is_paused = is_paused;
    jobs->baton = run;
    run->jobs = jobs;
    enter_phase(run, RUNNER_PHASE_TOOLS);
    if (runner_jobs_start(jobs, get_messages(run), &problem) != APR_SUCCESS) {
        fail_node(run, RUNNER_NODE_TOOLS, problem);
    }
}

static void advance_tools(runner_run_t *run)
{
    if (run->jobs->unfinished > 0) {
        wait_for(run, AGENT_CLOCK_NEVER);
        return;
    }
    commit_node(run, RUNNER_NODE_TOOLS, runner_jobs_messages(run->jobs),
                RUNNER_NODE_AGENT);
    leave_node(run);
    enter_phase(run, RUNNER_PHASE_NEXT);
}

static void start_node(runner_run_t *run)
{
    run->is_resuming = false;
    run->steps_left--;
    apr_pool_create(&run->node_pool, run->pool);
    runner_stream_task(run, run->next);
    if (run->next == RUNNER_NODE_AGENT) {
        start_agent(run);
    }
    else {
        start_tools(run);
    }
}

static void fail_overflow(runner_run_t *run)
{
    runner_problem_t *problem;

    runner_problem_set(&problem, run->pool, "StateTooLargeError",
                       "The state of the thread has grown too large: it may "
                       "have %d MiB, %d MiB of memory as a tree of objects, "
                       "and what a step adds or an event shows %d MiB. "
                       "Begin a new thread or remove messages.",
                       (int)(RUNNER_STATE_MAX >> 20),
                       (int)(RUNNER_STATE_WEIGHT_MAX >> 20),
                       (int)(RUNNER_LINE_MAX >> 20));
    fail_run(run, problem);
}

static void fail_steps(runner_run_t *run)
{
    runner_problem_t *problem;

    runner_problem_set(&problem, run->pool, "GraphRecursionError",
                       "Recursion limit reached without hitting a stop "
                       "condition: the graph %s took all the steps that it "
                       "may take and still wants to run the node %s. The "
                       "limit is AgentMaxSteps or the run's recursion_limit, "
                       "whichever is lower.",
                       run->graph->name, runner_node_name(run->next));
    fail_run(run, problem);
}

static bool is_at_breakpoint(const runner_run_t *run)
{
    if (run->is_resuming || run->next == RUNNER_NODE_NONE) {
        return false;
    }
    return (run->interrupt_after & (1U << run->last)) != 0
        || (run->interrupt_before & (1U << run->next)) != 0;
}

/* A superstep at a time, so that the run waits for credit between them. */
static void advance_call(runner_run_t *run)
{
    runner_problem_t *problem = NULL;

    if (!runner_update_has_more(run)) {
        end_run(run, SUCCESS, NULL);
    }
    else if (runner_update_apply(run, &problem) != APR_SUCCESS) {
        fail_run(run, problem);
    }
}

static void choose_next(runner_run_t *run)
{
    if (is_at_breakpoint(run)) {
        /* The thread is interrupted: its last checkpoint has a next node. */
        runner_stream_interrupt(run);
        end_run(run, SUCCESS, NULL);
    }
    else if (run->is_call) {
        advance_call(run);
    }
    else if (run->next == RUNNER_NODE_NONE || run->is_stopping) {
        end_run(run, run->next == RUNNER_NODE_NONE ? SUCCESS : DRAINED, NULL);
    }
    else if (run->steps_left <= 0) {
        fail_steps(run);
    }
    else if (run->uncommitted > 0) {
        wait_for(run, AGENT_CLOCK_NEVER);
    }
    else {
        start_node(run);
    }
}

/* The state has the input of `start` now. */
static void free_start(runner_run_t *run)
{
    json_object_object_del(run->start, "input");
    json_object_object_del(run->start, "command");
    if (!runner_update_has_more(run)) {
        json_object_object_del(run->start, "arguments");
    }
}

static void begin_run(runner_run_t *run)
{
    runner_problem_t *problem = NULL;

    if (run->graph != NULL && !run->is_loaded && !runner_load_begin(run)) {
        return;
    }
    if (run->graph != NULL) {
        runner_stream_begin(run);
    }
    if (runner_begin_state(run, &problem) != APR_SUCCESS) {
        fail_run(run, problem);
        return;
    }
    free_start(run);
    enter_phase(run, RUNNER_PHASE_NEXT);
}

static void advance_phase(runner_run_t *run)
{
    switch (run->phase) {
    case RUNNER_PHASE_BEGIN:
        begin_run(run);
        break;
    case RUNNER_PHASE_LOAD:
        wait_for(run, AGENT_CLOCK_NEVER);
        if (run->load_problem != NULL) {
            fail_run(run, run->load_problem);
        }
        break;
    case RUNNER_PHASE_NEXT:
        choose_next(run);
        break;
    case RUNNER_PHASE_AGENT:
        advance_agent(run);
        break;
    case RUNNER_PHASE_TOOLS:
        advance_tools(run);
        break;
    case RUNNER_PHASE_OVER:
        wait_for(run, AGENT_CLOCK_NEVER);
        break;
    }
}

void runner_run_advance(runner_run_t *run)
{
    if (run->is_too_large && run->phase != RUNNER_PHASE_OVER) {
        fail_overflow(run);
        return;
    }
    advance_phase(run);
}

void runner_run_stop(runner_run_t *run)
{
    run->is_stopping = true;
    if (run->phase == RUNNER_PHASE_BEGIN || run->phase == RUNNER_PHASE_LOAD) {
        end_run(run, DRAINED, NULL);
    }
}

/* Saves the text that the model has produced as its message; no node follows.
 */
static void keep_partial_answer(runner_run_t *run)
{
    runner_call_t *call = run->call;

    if (*runner_answer_text(&call->answer, call->pool) == '\0') {
        return;
    }
    commit_node(run, RUNNER_NODE_AGENT,
                runner_value_list_of(runner_answer_message(
                    &call->answer, RUNNER_ANSWER_CANCELLED)),
                RUNNER_NODE_NONE);
}

/* Saves the results of the tools that are done: a run that continues calls only
 * the others. */
static void keep_finished_jobs(runner_run_t *run)
{
    json_object *messages;

    messages = runner_jobs_messages(run->jobs);
    if (json_object_array_length(messages) == 0) {
        agent_json_own(messages, run->node_pool);
        return;
    }
    commit_node(run, RUNNER_NODE_TOOLS, messages,
                run->jobs->unfinished > 0 ? RUNNER_NODE_TOOLS
                                          : RUNNER_NODE_AGENT);
}

void runner_run_cancel(runner_run_t *run)
{
    runner_output_cancel(&run->output);
    if (run->phase == RUNNER_PHASE_BEGIN && !run->is_call) {
        /* The client's input stays in the state. */
        begin_run(run);
    }
    if (run->phase == RUNNER_PHASE_AGENT) {
        keep_partial_answer(run);
    }
    else if (run->phase == RUNNER_PHASE_TOOLS) {
        keep_finished_jobs(run);
    }
    if (run->phase != RUNNER_PHASE_OVER) {
        end_run(run, "interrupted", NULL);
    }
}
