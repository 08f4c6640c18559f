/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol lines of runners; see line.h. */
#include "line.h"

#include "../run_end.h"
#include "../runs.h"
#include "protocol.h"

static void take_ready(agent_runner_io_t *io, agent_runner_t *runner,
                       const agent_line_t *line)
{
    if (runner->state != AGENT_RUNNER_STARTING) {
        /* `ready` may cross our `drain`. */
        if (runner->state == AGENT_RUNNER_READY) {
            agent_runner_breach(io->runners, runner, "it said ready twice");
        }
        return;
    }
    runner->state = AGENT_RUNNER_READY;
    runner->slots = line->slots < io->context->config->slots
        ? line->slots
        : io->context->config->slots;
    runner->limit_at = AGENT_CLOCK_NEVER;
    runner->ping_at = io->context->now + io->context->timing.ping_interval;
    agent_report_write(io->context, AGENT_LOG_INFO, "AGT0330", 0,
                       "runner %d is ready for %d runs at once",
                       (int)runner->pid, runner->slots);
    agent_schedule_claim(io->schedule);
}

/* One pong for each ping: each costs a turn of the loop. */
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
}

/* Longest text of a failure in the log. */
#define MAX_FAILURE_BYTES 2000

/* Writes the error of a failed run to the log too. */
static void report_failure(const agent_context_t *context,
                           const agent_line_t *line)
{
    apr_size_t length = line->failure_length < MAX_FAILURE_BYTES
        ? line->failure_length
        : MAX_FAILURE_BYTES;

    if (line->failure != NULL) {
        agent_report_write(context, AGENT_LOG_WARNING, "AGT0349", 0,
                           "run %.36s ended in error: %.*s", line->key.run_id,
                           (int)length, line->failure);
    }
}

/* Ends the runner's side. The reason for which the run was asked to end decides
 * its status. */
static void take_end(agent_runs_t *runs, agent_lease_t *lease,
                     const agent_line_t *line, const char *text,
                     apr_size_t length)
{
    if (lease->state != AGENT_LEASE_HELD) {
        /* Ignored, like its other lines. */
    }
    else if (lease->cause == AGENT_CAUSE_DRAIN && !line->success) {
        agent_run_end_release(runs, lease, false, "the server was drained");
    }
    else if (lease->cause == AGENT_CAUSE_DEADLINE && !line->success) {
        agent_run_end_time_out(runs, lease);
    }
    else {
        report_failure(runs->context, line);
        agent_batch_add(&runs->batches, lease, AGENT_ITEM_END, text, length);
        agent_run_end_set_state(runs, lease, AGENT_LEASE_ENDED);
    }
    agent_run_end_detach(runs, lease);
}

static void take_run_line(agent_runner_io_t *io, agent_runner_t *runner,
                          const agent_line_t *line, const char *text,
                          apr_size_t length)
{
    agent_runs_t *runs = io->runs;
    agent_lease_t *lease = agent_lease_find(&runs->leases, &line->key);

    if (lease == NULL || lease->runner != runner) {
        agent_runner_breach(io->runners, runner,
                            "it named a run that it does not execute");
        return;
    }
    if (line->type == AGENT_LINE_WANT) {
        if (!agent_credit_ask(&runs->credits, lease, line->wanted)) {
            agent_runner_breach(io->runners, runner,
                                "a run asked again before it read go");
        }
        return;
    }
    agent_credit_spend(&runs->credits, lease, length + 1);
    if (line->type == AGENT_LINE_END) {
        take_end(runs, lease, line, text, length);
    }
    else if (lease->state == AGENT_LEASE_HELD) {
        agent_batch_add(&runs->batches, lease,
                        line->type == AGENT_LINE_EVENT ? AGENT_ITEM_EVENT
                                                       : AGENT_ITEM_CHECKPOINT,
                        text, length);
    }
}

bool agent_runner_has_room(const agent_runs_t *runs,
                           const agent_runner_t *runner,
                           const agent_lease_key_t *key, apr_size_t length)
{
    const agent_lease_t *lease = agent_lease_find(&runs->leases, key);

    return lease == NULL || lease->runner != runner
        || lease->state != AGENT_LEASE_HELD
        || agent_credit_takes(&runs->credits, lease, length);
}

/* Lines of a run, but not its requests, are stored. */
static bool is_stored(const agent_line_t *line)
{
    return line->type != AGENT_LINE_READY && line->type != AGENT_LINE_PONG
        && line->type != AGENT_LINE_WANT;
}

bool agent_runner_take_line(agent_runner_io_t *io, agent_runner_t *runner,
                            const char *text, apr_size_t length, bool is_last)
{
    agent_line_t line;
    const char *wrong = agent_protocol_read(&line, text, length);

    if (wrong != NULL) {
        agent_report_write(io->context, AGENT_LOG_DEBUG, "AGT0339", 0,
                           "refused line of runner %d, %lu bytes",
                           (int)runner->pid, (unsigned long)length);
        agent_runner_breach(io->runners, runner, wrong);
    }
    else if (!is_last && is_stored(&line)
             && !agent_runner_has_room(io->runs, runner, &line.key, length)) {
        runner->held_key = line.key;
        agent_credit_hold(&io->runs->credits,
                          agent_lease_find(&io->runs->leases, &line.key),
                          length);
        return false;
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
