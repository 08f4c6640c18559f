/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that are held back; see held.h. */
#include "output.h"

#include <inttypes.h>
#include <string.h>

bool runner_output_is_waiting(const runner_run_t *run)
{
    return run->held.length > 0;
}

bool runner_output_is_full(const runner_run_t *run)
{
    return runner_output_is_waiting(run)
        || (run->wire->held >= RUNNER_HELD_MAX
            && run->weight > RUNNER_LINE_LONG);
}

void runner_output_keep(runner_run_t *run)
{
    size_t length = runner_wire_last(run->wire);

    if (length > RUNNER_LINE_LONG || runner_output_is_waiting(run)
        || run->said + length > RUNNER_SAID_MAX) {
        runner_wire_move(run->wire, &run->held);
        run->wire->held += length + 1;
    }
    else {
        run->said += length + 1;
    }
}

/* Where the line that begins there ends, newline included. */
static size_t find_end(const runner_buffer_t *held, size_t start)
{
    const char *line = held->bytes + start;

    return start + 1
        + (size_t)((const char *)memchr(line, '\n', held->length - start)
                   - line);
}

/* Bytes of the first lines, newlines included: of a long one, or of short ones
 * that are no longer than that together. */
static size_t measure_portion(const runner_buffer_t *held)
{
    size_t portion = find_end(held, 0);

    while (portion < held->length
           && find_end(held, portion) <= RUNNER_LINE_LONG) {
        portion = find_end(held, portion);
    }
    return portion;
}

void runner_output_ask(runner_run_t *run)
{
    if (run->asked > 0 || !runner_output_is_waiting(run)) {
        return;
    }
    run->asked = measure_portion(&run->held);
    runner_wire_begin(run->wire,
                      "{\"type\":\"want\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"bytes\":%" PRIu64 "}",
                      run->run_id, run->epoch, (uint64_t)run->asked);
    runner_wire_end(run->wire);
}

void runner_output_go(runner_run_t *run)
{
    const runner_buffer_t *held = &run->held;
    size_t end = run->asked;

    while (end < held->length) {
        size_t next = find_end(held, end);

        if (next - end > RUNNER_LINE_LONG || next > RUNNER_SAID_MAX) {
            break;
        }
        end = next;
    }
    runner_wire_put(run->wire, held->bytes, end);
    runner_buffer_consume(&run->held, end);
    run->wire->held -= end;
    run->said = end;
    run->asked = 0;
}
