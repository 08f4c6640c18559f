/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol lines of runners; see line.h. */
#include "line.h"

#include <stdio.h>

#include "../../base/order.h"
#include "../protocol/protocol.h"
#include "../run/ack.h"
#include "../run/run_end.h"
#include "../run/runs.h"

/* Quarantined runs are assigned to a runner before it reports its graphs. The
 * attempt counts, so that one that never finds its graph ends. */
static void refuse_other_graphs(agent_runs_t *runs, agent_runner_t *runner)
{
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH_SAFE(lease, next, &runner->group.leases, agent_lease_t,
                         link)
    {
        if (agent_lease_waits(lease) && !runner->set->has[lease->graph]) {
            agent_run_end_release(runs, lease, true,
                                  "its runner did not report the graph");
            agent_run_end_detach(runs, lease);
        }
    }
}

/* A runner that is being drained may import still. */
static void take_importing(agent_runner_io_t *io, agent_runner_t *runner,
                           const agent_line_t *line)
{
    agent_graph_table_t *graphs = &runner->runner_pool->graphs;
    agent_member_t name = {.key = line->graph,
                           .key_length = line->graph_length};
    int number = line->graph != NULL ? agent_graphs_find_member(graphs, &name)
                                     : -1;

    if (runner->slots > 0) {
        agent_runner_breach(io->runners, runner,
                            "it imported a graph after it was ready");
        return;
    }
    runner->importing = number >= 0 ? &graphs->graphs[number] : NULL;
    if (line->graph != NULL && number < 0) {
        agent_runner_breach(io->runners, runner,
                            "it imported a graph that hello does not name");
    }
}

static void take_ready(agent_runner_io_t *io, agent_runner_t *runner,
                       const agent_line_t *line)
{
    const agent_pool_config_t *config = runner->runner_pool->config;
    const char *wrong;

    if (runner->state != AGENT_RUNNER_STARTING) {
        /* `ready` may cross our `drain`. */
        if (runner->state == AGENT_RUNNER_READY) {
            agent_runner_breach(io->runners, runner, "it sent ready twice");
        }
        return;
    }
    wrong = agent_graphs_take(&runner->runner_pool->graphs, &runner->set, line);
    if (wrong != NULL) {
        agent_runner_breach(io->runners, runner, wrong);
        return;
    }
    agent_graphs_clear(&runner->runner_pool->graphs, runner->left_out);
    agent_pool_reset_failed_starts(runner->runner_pool);
    agent_pool_note_reports(runner->runner_pool);
    runner->state = AGENT_RUNNER_READY;
    runner->slots = AGENT_MIN(line->slots, config->slots);
    runner->limit_at = AGENT_CLOCK_NEVER;
    runner->ping_at = io->context->now + io->context->timing.ping_interval;
    agent_report_write(io->context, AGENT_LOG_INFO, "AGT0330", 0,
                       "runner %d of pool %s is ready for %d runs at "
                       "once",
                       (int)runner->pid, config->name, runner->slots);
    if (runner->set->count == 0) {
        agent_report_repeat_of(
            io->context, &runner->runner_pool->report, AGENT_LOG_WARNING,
            "AGT0367", 0,
            "runner %d of pool %s reported none of its %d graphs: it gets no "
            "runs",
            (int)runner->pid, config->name, config->graph_count);
    }
    refuse_other_graphs(io->runs, runner);
    agent_pool_request_claim(runner->runner_pool);
}

/* A runner may answer pings in a thread of its own while a node keeps all its
 * runs from continuing. */
static void check_busy(const agent_runner_io_t *io, agent_runner_t *runner,
                       apr_int64_t busy_ms)
{
    apr_int64_t most = apr_time_as_msec(
        runner->runner_pool->config->busy_timeout);

    if (most > 0 && busy_ms > most) {
        agent_report_write(io->context, AGENT_LOG_ERR, "AGT0366", 0,
                           "runner %d has executed no other run for %d s: it "
                           "is killed, its %d runs are released",
                           (int)runner->pid, (int)(busy_ms / 1000),
                           runner->group.active);
        agent_runner_kill(io->runners, runner, AGENT_LOSS_COUNTED,
                          "the runner was busy with one run for too long");
    }
}

/* Only one pong for each ping, since each costs an iteration of the loop. */
static void take_pong(agent_runner_io_t *io, agent_runner_t *runner,
                      const agent_line_t *line)
{
    if (runner->pong_by == AGENT_CLOCK_NEVER
        || line->ping_id != runner->ping_id) {
        agent_runner_breach(io->runners, runner,
                            "it sent a pong without a ping");
        return;
    }
    runner->pong_by = AGENT_CLOCK_NEVER;
    runner->ping_at = io->context->now + io->context->timing.ping_interval;
    runner->wants_replacement = runner->wants_replacement
        || line->wants_replacement;
    check_busy(io, runner, line->busy_ms);
}

/* Longest text of a failure in the log. */
#define MAX_FAILURE_BYTES ((apr_size_t)2000)

/* Writes the error of a failed run or call to the log too. The error of a call
 * is an answer to its client. */
static void report_failure(const agent_context_t *context,
                           const agent_lease_t *lease, const agent_line_t *line)
{
    apr_size_t length = AGENT_MIN(line->failure_length, MAX_FAILURE_BYTES);

    if (line->failure != NULL) {
        agent_report_write(context,
                           lease->is_call ? AGENT_LOG_INFO : AGENT_LOG_WARNING,
                           "AGT0349", 0, "%s %.36s ended in error: %.*s",
                           lease->is_call ? "call" : "run", line->key.run_id,
                           (int)length, line->failure);
    }
}

/* Ends the runner's side. If the run was asked to end, the reason decides its
 * status. */
static void take_end(agent_runs_t *runs, agent_lease_t *lease,
                     const agent_line_t *line, const char *text,
                     apr_size_t length)
{
    if (lease->state != AGENT_LEASE_HELD) {
        /* Ignored, like its other lines. */
    }
    else if (lease->cause == AGENT_CAUSE_DEADLINE && !line->success) {
        agent_run_end_time_out(runs, lease);
    }
    else if (line->is_drained
             || (lease->cause == AGENT_CAUSE_DRAIN && !line->success)) {
        /* If it was cancelled, the release ends it. */
        agent_run_end_release(runs, lease, false, "the server was drained");
    }
    else {
        report_failure(runs->context, lease, line);
        agent_batch_add(&runs->batches, lease, AGENT_ITEM_END, text, length,
                        -1);
        agent_run_end_set_state(runs, lease, AGENT_LEASE_ENDED);
    }
    agent_run_end_detach(runs, lease);
}

static void take_request(agent_runner_io_t *io, agent_runner_t *runner,
                         agent_lease_t *lease, const agent_line_t *line,
                         apr_size_t length)
{
    agent_runs_t *runs = io->runs;
    const char *wrong = lease->is_started
        ? agent_runner_request_take(&runs->requests, lease, line)
        : "it named a run that it was not given";

    if (length > AGENT_BATCH_LONG_LINE) {
        agent_credit_spend(&runs->credits, lease, length + 1);
    }
    if (wrong != NULL) {
        agent_runner_breach(io->runners, runner, wrong);
    }
    else if (lease->request.is_waiting && !lease->request.is_queued) {
        /* It waits for records of the run. */
        agent_batch_flush_run(&runs->batches, lease->key.run_id);
    }
}

/* The kind of output that an event, a checkpoint, a task or a record is. */
static agent_item_kind_t kind_of(const agent_line_t *line)
{
    switch (line->type) {
    case AGENT_LINE_EVENT:
        return AGENT_ITEM_EVENT;
    case AGENT_LINE_TASK:
        return AGENT_ITEM_TASK;
    case AGENT_LINE_RECORD:
        return AGENT_ITEM_RECORD;
    default:
        return AGENT_ITEM_CHECKPOINT;
    }
}

static void take_item(agent_runner_io_t *io, agent_runner_t *runner,
                      agent_lease_t *lease, const agent_line_t *line,
                      const char *text, apr_size_t length)
{
    const char *wrong = line->ack >= 0 ? agent_ack_take(lease) : NULL;

    if (wrong != NULL) {
        agent_runner_breach(io->runners, runner, wrong);
        return;
    }
    agent_batch_add(&io->runs->batches, lease, kind_of(line), text, length,
                    line->ack);
}

/* Output of the run, which is stored. */
static void take_output(agent_runner_io_t *io, agent_runner_t *runner,
                        agent_lease_t *lease, const agent_line_t *line,
                        const char *text, apr_size_t length)
{
    agent_runs_t *runs = io->runs;

    agent_credit_spend(&runs->credits, lease, length + 1);
    if (line->type == AGENT_LINE_END) {
        take_end(runs, lease, line, text, length);
    }
    else if (lease->state != AGENT_LEASE_HELD) {
        /* Ignored: the run was taken from the runner. */
    }
    else {
        take_item(io, runner, lease, line, text, length);
    }
}

/* Why the run or call may not send that line now; NULL: it may. */
static const char *find_breach(const agent_lease_t *lease,
                               const agent_line_t *line)
{
    if (line->type == AGENT_LINE_EVENT && lease->is_call) {
        return "it sent an event of a call";
    }
    if (line->type != AGENT_LINE_END) {
        return lease->is_reading
            ? "it sent output of a call that changes nothing"
            : NULL;
    }
    if (line->has_value && !lease->is_reading) {
        return "it ended a run or an update with a value";
    }
    return line->is_drained && !lease->is_stopping
        ? "a run ended as drained that was not to stop"
        : NULL;
}

static void take_run_line(agent_runner_io_t *io, agent_runner_t *runner,
                          const agent_line_t *line, const char *text,
                          apr_size_t length)
{
    agent_runs_t *runs = io->runs;
    agent_lease_t *lease = agent_lease_find(&runs->leases, &line->key);
    const char *wrong;

    if (lease == NULL || lease->group != &runner->group) {
        agent_runner_breach(io->runners, runner,
                            "it named a run that it does not execute");
        return;
    }
    if (line->type == AGENT_LINE_WANT) {
        if (!agent_credit_request(&runs->credits, lease, line->wanted)) {
            agent_runner_breach(io->runners, runner,
                                "a run requested credit again before it "
                                "read go");
        }
        return;
    }
    if (line->type == AGENT_LINE_REQUEST) {
        take_request(io, runner, lease, line, length);
        return;
    }
    wrong = find_breach(lease, line);
    if (wrong != NULL) {
        agent_runner_breach(io->runners, runner, wrong);
        return;
    }
    take_output(io, runner, lease, line, text, length);
}

bool agent_runner_line_has_room(const agent_runs_t *runs,
                                const agent_runner_t *runner,
                                const agent_lease_key_t *key, apr_size_t length)
{
    const agent_lease_t *lease = agent_lease_find(&runs->leases, key);

    return lease == NULL || lease->group != &runner->group
        || lease->state != AGENT_LEASE_HELD
        || agent_credit_allows(&runs->credits, lease, length);
}

/* Whether the line is output of a run, or a long request, which is kept until
 * its reply. */
static bool needs_room(const agent_line_t *line, apr_size_t length)
{
    switch (line->type) {
    case AGENT_LINE_EVENT:
    case AGENT_LINE_CHECKPOINT:
    case AGENT_LINE_TASK:
    case AGENT_LINE_RECORD:
    case AGENT_LINE_END:
        return true;
    case AGENT_LINE_REQUEST:
        return length > AGENT_BATCH_LONG_LINE;
    case AGENT_LINE_IMPORTING:
    case AGENT_LINE_READY:
    case AGENT_LINE_PONG:
    case AGENT_LINE_WANT:
        break;
    }
    return false;
}

/* wrong: what the line is or has, for the log. */
static void refuse_line(agent_runner_io_t *io, agent_runner_t *runner,
                        const char *wrong, apr_size_t length)
{
    char what[128];

    agent_report_write(io->context, AGENT_LOG_DEBUG, "AGT0339", 0,
                       "refused line of runner %d, %lu bytes", (int)runner->pid,
                       (unsigned long)length);
    snprintf(what, sizeof(what), "its line %s", wrong);
    agent_runner_breach(io->runners, runner, what);
}

bool agent_runner_line_take(agent_runner_io_t *io, agent_runner_t *runner,
                            const char *text, apr_size_t length, bool is_last)
{
    agent_line_t line;
    const char *wrong = agent_protocol_read(&line, text, length);

    if (wrong != NULL) {
        refuse_line(io, runner, wrong, length);
    }
    else if (!is_last && needs_room(&line, length)
             && !agent_runner_line_has_room(io->runs, runner, &line.key,
                                            length)) {
        runner->held_key = line.key;
        agent_credit_hold(&io->runs->credits,
                          agent_lease_find(&io->runs->leases, &line.key),
                          length);
        return false;
    }
    else if (line.type == AGENT_LINE_IMPORTING) {
        take_importing(io, runner, &line);
    }
    else if (line.type == AGENT_LINE_READY) {
        take_ready(io, runner, &line);
    }
    else if (line.type == AGENT_LINE_PONG) {
        take_pong(io, runner, &line);
    }
    else {
        take_run_line(io, runner, &line, text, length);
    }
    return true;
}
