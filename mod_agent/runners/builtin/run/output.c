/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control of a run's output: credit and backlog. */
#include "output.h"

#include <inttypes.h>
#include <string.h>

void runner_output_init(runner_output_t *output, runner_wire_t *wire,
                        const char *run_id, int64_t epoch, apr_pool_t *pool)
{
    output->wire = wire;
    output->run_id = run_id;
    output->epoch = epoch;
    output->sent = 0;
    output->requested = 0;
    agent_buffer_init(&output->backlog, pool);
}

bool runner_output_has_backlog(const runner_output_t *output)
{
    return agent_buffer_length(&output->backlog) > 0;
}

bool runner_output_is_blocked(const runner_output_t *output, size_t weight)
{
    return runner_output_has_backlog(output)
        || (output->wire->backlog >= RUNNER_BACKLOG_MAX
            && weight > RUNNER_LINE_LONG);
}

void runner_output_add(runner_output_t *output)
{
    size_t length = runner_wire_last(output->wire);

    if (length > RUNNER_LINE_LONG || runner_output_has_backlog(output)
        || output->sent + length > RUNNER_CREDIT_MAX) {
        runner_wire_move(output->wire, &output->backlog);
        output->wire->backlog += length + 1;
    }
    else {
        output->sent += length + 1;
    }
}

/* Returns the end of the line that begins at start, newline included. */
static size_t find_end(const agent_buffer_t *backlog, size_t start)
{
    const char *line = agent_buffer_text(backlog) + start;
    const char *newline = memchr(line, '\n',
                                 agent_buffer_length(backlog) - start);

    return start + 1 + (size_t)(newline - line);
}

/* Returns the bytes to request: one line, or several of at most
 * RUNNER_LINE_LONG bytes together. */
static size_t measure_request(const agent_buffer_t *backlog)
{
    size_t size = find_end(backlog, 0);

    while (size < agent_buffer_length(backlog)
           && find_end(backlog, size) <= RUNNER_LINE_LONG) {
        size = find_end(backlog, size);
    }
    return size;
}

void runner_output_request(runner_output_t *output)
{
    if (output->requested > 0 || !runner_output_has_backlog(output)) {
        return;
    }
    output->requested = measure_request(&output->backlog);
    runner_wire_begin(output->wire,
                      "{\"type\":\"want\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"bytes\":%" PRIu64 "}",
                      output->run_id, output->epoch,
                      (uint64_t)output->requested);
    runner_wire_end(output->wire);
}

void runner_output_grant(runner_output_t *output)
{
    const agent_buffer_t *backlog = &output->backlog;
    size_t end = output->requested;

    while (end < agent_buffer_length(backlog)) {
        size_t next = find_end(backlog, end);

        if (next - end > RUNNER_LINE_LONG || next > RUNNER_CREDIT_MAX) {
            break;
        }
        end = next;
    }
    runner_wire_put(output->wire, agent_buffer_text(backlog), end);
    agent_buffer_consume(&output->backlog, end);
    output->wire->backlog -= end;
    output->sent = end;
    output->requested = 0;
}
