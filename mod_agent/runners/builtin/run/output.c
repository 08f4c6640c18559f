/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control of a run's output: credit and backlog. */
#include "output.h"

#include <inttypes.h>

void runner_output_init(runner_output_t *output, runner_wire_t *wire,
                        const char *run_id, int64_t epoch, apr_pool_t *pool)
{
    output->wire = wire;
    output->run_id = run_id;
    output->epoch = epoch;
    output->sent = 0;
    output->requested = 0;
    output->is_cancelled = false;
    output->has_dropped = false;
    agent_buffer_init(&output->backlog, pool);
    agent_buffer_init(&output->lines, pool);
}

bool runner_output_has_backlog(const runner_output_t *output)
{
    return agent_buffer_length(&output->backlog) > 0;
}

bool runner_output_is_blocked(const runner_output_t *output, size_t text_size)
{
    return runner_output_has_backlog(output)
        || (output->wire->backlog >= RUNNER_BACKLOG_MAX
            && text_size > RUNNER_LINE_LONG);
}

static void move_to_backlog(runner_output_t *output, runner_line_t line)
{
    runner_wire_move_last(output->wire, &output->backlog);
    agent_buffer_append(&output->lines, (const char *)&line, sizeof(line));
    output->wire->backlog += line.length;
}

void runner_output_add(runner_output_t *output, bool is_optional)
{
    size_t length = runner_wire_last_length(output->wire);
    bool has_credit = length <= RUNNER_LINE_LONG
        && !runner_output_has_backlog(output)
        && output->sent + length <= RUNNER_CREDIT_MAX;

    if (output->is_cancelled && is_optional
        && (!has_credit || output->has_dropped)) {
        runner_wire_drop(output->wire);
        output->has_dropped = true;
    }
    else if (has_credit) {
        output->sent += length + 1;
    }
    else {
        move_to_backlog(output, (runner_line_t){length + 1, is_optional});
    }
}

static size_t count_lines(const runner_output_t *output)
{
    return agent_buffer_length(&output->lines) / sizeof(runner_line_t);
}

static const runner_line_t *get_line(const runner_output_t *output, size_t i)
{
    return (const runner_line_t *)agent_buffer_text(&output->lines) + i;
}

/* Copies the lines that are kept to new buffers. */
void runner_output_cancel(runner_output_t *output)
{
    runner_output_t old = *output;
    size_t start = 0;

    output->is_cancelled = true;
    agent_buffer_init(&output->backlog, old.backlog.parent);
    agent_buffer_init(&output->lines, old.lines.parent);
    for (size_t i = 0; i < count_lines(&old); i++) {
        const runner_line_t *line = get_line(&old, i);

        if (start < output->requested || !line->is_optional) {
            agent_buffer_append(&output->backlog,
                                agent_buffer_text(&old.backlog) + start,
                                line->length);
            agent_buffer_append(&output->lines, (const char *)line,
                                sizeof(*line));
        }
        else {
            output->wire->backlog -= line->length;
            output->has_dropped = true;
        }
        start += line->length;
    }
    agent_buffer_clear(&old.backlog);
    agent_buffer_clear(&old.lines);
}

/* Returns the bytes to request: one line, or several of at most
 * RUNNER_LINE_LONG bytes together. */
static size_t measure_request(const runner_output_t *output)
{
    size_t size = get_line(output, 0)->length;

    for (size_t i = 1; i < count_lines(output)
         && size + get_line(output, i)->length <= RUNNER_LINE_LONG;
         i++) {
        size += get_line(output, i)->length;
    }
    return size;
}

void runner_output_request(runner_output_t *output)
{
    if (output->requested > 0 || !runner_output_has_backlog(output)) {
        return;
    }
    output->requested = measure_request(output);
    runner_wire_begin(output->wire,
                      "{\"type\":\"want\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"bytes\":%" PRIu64 "}",
                      output->run_id, output->epoch,
                      (uint64_t)output->requested);
    runner_wire_end(output->wire);
}

/* Whether a line of that length is sent after `before` bytes of the backlog. */
static bool is_granted(const runner_output_t *output, size_t before,
                       size_t length)
{
    return before < output->requested
        || (length <= RUNNER_LINE_LONG && before + length <= RUNNER_CREDIT_MAX);
}

void runner_output_grant(runner_output_t *output)
{
    size_t count = 0;
    size_t end = 0;

    /* It would be credit for what was sent before. */
    if (output->requested == 0) {
        return;
    }
    while (count < count_lines(output)
           && is_granted(output, end, get_line(output, count)->length)) {
        end += get_line(output, count++)->length;
    }
    runner_wire_append(output->wire, agent_buffer_text(&output->backlog), end);
    agent_buffer_consume(&output->backlog, end);
    agent_buffer_consume(&output->lines, count * sizeof(runner_line_t));
    output->wire->backlog -= end;
    output->sent = end;
    output->requested = 0;
}
