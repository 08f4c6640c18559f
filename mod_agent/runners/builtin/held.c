/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that are held back; see held.h. */
#include "held.h"

#include <inttypes.h>
#include <string.h>

bool runner_held_is_waiting(const runner_run_t *run)
{
    return run->held.length > 0;
}

void runner_held_keep(runner_run_t *run)
{
    size_t length = runner_wire_last(run->wire);

    if (length > RUNNER_LINE_LONG || runner_held_is_waiting(run)
        || run->said + length > RUNNER_SAID_MAX) {
        runner_wire_move(run->wire, &run->held);
    }
    else {
        run->said += length + 1;
    }
}

/* Bytes of the first lines, newlines included: as many lines as have at most
 * RUNNER_LINE_MAX together, or one. */
static size_t measure_portion(const runner_buffer_t *held)
{
    size_t portion = 0;

    while (portion < held->length) {
        const char *line = held->bytes + portion;
        const char *newline = memchr(line, '\n', held->length - portion);
        size_t end = portion + (size_t)(newline - line) + 1;

        if (portion > 0 && end > RUNNER_LINE_MAX) {
            break;
        }
        portion = end;
    }
    return portion;
}

void runner_held_ask(runner_run_t *run)
{
    if (run->asked > 0 || !runner_held_is_waiting(run)) {
        return;
    }
    run->asked = measure_portion(&run->held);
    runner_wire_begin(run->wire,
                      "{\"type\":\"want\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"bytes\":%" PRIu64 "}",
                      run->run_id, run->epoch, (uint64_t)run->asked);
    runner_wire_end(run->wire);
}

void runner_held_go(runner_run_t *run)
{
    runner_wire_put(run->wire, run->held.bytes, run->asked);
    runner_buffer_consume(&run->held, run->asked);
    run->said = run->asked;
    run->asked = 0;
}
