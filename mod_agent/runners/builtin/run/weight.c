/* SPDX-License-Identifier: Apache-2.0 */
/* Estimating the weight of a run. */
#include "weight.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/raw.h"
#include "core/scan.h"
#include "runners/builtin/base/raw.h"
#include "runners/builtin/base/value.h"

/* An element of a list in an input becomes a message of 3 KB or a block of
 * 1.2 KB; the shortest one, a text of one letter, weighs 97 bytes. */
#define INPUT_GROWTH 32
/* The text of the shortest message, which an element of an input becomes. */
#define ELEMENT_TEXT 160

/* A state of messages takes about this many times its text as a tree. */
#define STATE_GROWTH 12

/* The text of the state from which a run starts, which its start line says. */
static size_t read_state_bytes(agent_raw_t line)
{
    agent_raw_t bytes = agent_raw_get(agent_raw_get(line, "checkpoint"),
                                      "bytes");

    return agent_raw_kind(bytes) == AGENT_RAW_NUMBER
        ? (size_t)strtoull(bytes.text, NULL, 10)
        : 0;
}

static size_t estimate_state(size_t bytes)
{
    return bytes < RUNNER_STATE_WEIGHT_MAX / STATE_GROWTH
        ? bytes * STATE_GROWTH
        : RUNNER_STATE_WEIGHT_MAX;
}

/* The memory that applying an input adds to its own tree; texts keep their
 * length. */
static size_t weigh_growth(agent_raw_t input)
{
    size_t weight = input.length > 0
        ? runner_value_weigh(input.text, input.length)
        : 0;
    size_t structure = weight > input.length ? weight - input.length : 0;

    return structure < RUNNER_STATE_WEIGHT_MAX / INPUT_GROWTH
        ? structure * INPUT_GROWTH
        : RUNNER_STATE_WEIGHT_MAX;
}

/* The text that applying an input adds. A comma in a string counts as well. */
static size_t measure_growth(agent_raw_t input)
{
    size_t elements = 1;

    for (size_t i = 0; i < input.length; i++) {
        elements += input.text[i] == ',';
    }
    return elements * ELEMENT_TEXT;
}

/* line: a start or a call. */
static void weigh_start(runner_weight_t *weight, agent_raw_t line)
{
    size_t bytes = read_state_bytes(line);
    bool is_call = agent_raw_equals(agent_raw_get(line, "type"), "call");
    agent_raw_t input = agent_raw_get(line, is_call ? "arguments" : "input");

    weight->state = estimate_state(bytes);
    weight->begun = weight->line + weight->state;
    weight->text += bytes;
    weight->text += measure_growth(input)
        + measure_growth(agent_raw_get(line, "command"));
    if (weight->line > RUNNER_WEIGHT_SMALL / (INPUT_GROWTH + 1)) {
        weight->begun += weigh_growth(input)
            + weigh_growth(agent_raw_get(line, "command"));
    }
}

apr_status_t runner_weight_estimate(runner_weight_t *weight, const char *text,
                                    size_t length, agent_error_t **err,
                                    apr_pool_t *pool)
{
    size_t space = strspn(text, " \t\r\n");
    /* Not agent_raw_read(), which walks over the whole line. */
    agent_raw_t line = {text + space, length - space};
    apr_status_t rv;

    weight->begun = weight->state = 0;
    weight->text = length;
    rv = agent_json_scan(&weight->line, text, length, err, pool);
    if (rv == APR_SUCCESS
        && (agent_raw_equals(agent_raw_get(line, "type"), "start")
            || agent_raw_equals(agent_raw_get(line, "type"), "call"))) {
        weigh_start(weight, line);
    }
    return rv;
}

static size_t sum_excess(json_object *list, const char *key)
{
    size_t bytes = 0;

    for (size_t i = 0; i < runner_value_count(list); i++) {
        json_object *item = json_object_array_get_idx(list, i);

        bytes += runner_raw_excess(agent_json_get(item, key));
    }
    return bytes;
}

size_t runner_weight_excess(json_object *messages)
{
    size_t bytes = 0;

    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        json_object *message = json_object_array_get_idx(messages, i);

        bytes += sum_excess(agent_json_get(message, "tool_calls"), "args")
            + sum_excess(agent_json_get(message, "content"), "input");
    }
    return bytes;
}
