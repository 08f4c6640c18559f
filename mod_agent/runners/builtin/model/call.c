/* SPDX-License-Identifier: Apache-2.0 */
/* Reporting the pieces of a model's answer. */
#include "call.h"

#include <string.h>

#include "core/clock.h"
#include "runners/builtin/base/surrogates.h"
#include "runners/builtin/base/text.h"

void runner_call_add_text(runner_call_t *call, const char *text, size_t length)
{
    runner_delta_t delta = {text, length, NULL, false};

    delta.text = runner_surrogates_join(&call->answer.pending_surrogate, text,
                                        &delta.length, call->pool);
    if (delta.length == 0 || call->answer.excess != NULL) {
        return;
    }
    runner_answer_add_text(&call->answer, delta.text, delta.length);
    call->on_delta(call->baton, &delta);
}

runner_block_t *runner_call_begin_tool(runner_call_t *call, int index,
                                       const char *id, const char *name)
{
    runner_delta_t delta = {"", 0, NULL, true};

    delta.call = runner_answer_add_call(&call->answer, index, id, name);
    if (delta.call != NULL) {
        call->on_delta(call->baton, &delta);
    }
    return (runner_block_t *)delta.call;
}

void runner_call_add_args(runner_call_t *call, runner_block_t *block,
                          const char *text, size_t length)
{
    runner_delta_t delta = {text, length, block, false};

    delta.text = runner_surrogates_join(&block->pending_surrogate, text,
                                        &delta.length, call->pool);
    if (delta.length == 0 || call->answer.excess != NULL) {
        return;
    }
    runner_answer_add_args(&call->answer, block, delta.text, delta.length);
    call->on_delta(call->baton, &delta);
}

void runner_call_send_custom(runner_call_t *call, json_object *data)
{
    call->on_custom(call->baton, data);
}

/* A high surrogate at the end of the answer has no low surrogate. */
static void end_text(runner_call_t *call)
{
    if (call->answer.pending_surrogate != 0) {
        call->answer.pending_surrogate = 0;
        runner_call_add_text(call, RUNNER_TEXT_REPLACEMENT,
                             strlen(RUNNER_TEXT_REPLACEMENT));
    }
}

void runner_call_end(runner_call_t *call)
{
    end_text(call);
    call->is_over = true;
    call->wake_at = AGENT_CLOCK_NEVER;
    call->on_change(call->baton);
}
