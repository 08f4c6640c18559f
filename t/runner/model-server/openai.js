// SPDX-License-Identifier: Apache-2.0
// POST /v1/chat/completions like OpenAI's service, including its refusals, and
// with the quirks of compatible servers.
'use strict';

const log = require('./log');
const script = require('./script');
const stream = require('./stream');

const KEY = 'test-key-openai';

function makeError(status, message) {
    const type = status === 429 ? 'rate_limit_exceeded'
        : status >= 500 ? 'server_error' : 'invalid_request_error';
    return { error: { message: message || type, type, param: null, code: null } };
}

function checkCalls(message, i) {
    if (message.tool_calls !== undefined && message.tool_calls.length === 0) {
        return `Invalid 'messages[${i}].tool_calls': empty array.`;
    }
    for (const call of message.tool_calls || []) {
        if (call.type !== 'function' || typeof call.function.arguments !== 'string') {
            return `Invalid type for 'messages[${i}].tool_calls[0]'.`;
        }
        if (call.id.length > 40) {
            return `Invalid 'messages[${i}].tool_calls[0].id': string too long.`;
        }
    }
    if (message.content === null && !message.tool_calls) {
        return `Invalid value for 'content': expected a string, got null.`;
    }
    return undefined;
}

// Tool messages must follow their calls, and each call must have one.
function checkOrder(messages) {
    let open = [];
    for (let i = 0; i < messages.length; i++) {
        const message = messages[i];
        if (message.role === 'tool') {
            if (!open.includes(message.tool_call_id)) {
                return `Invalid parameter: messages with role 'tool' must be a response to a `
                    + `preceding message with 'tool_calls'.`;
            }
            open = open.filter((id) => id !== message.tool_call_id);
            continue;
        }
        if (open.length) {
            return `An assistant message with 'tool_calls' must be followed by tool messages `
                + `responding to each 'tool_call_id'. Missing: ${open.join(', ')}`;
        }
        const problem = message.role === 'assistant' && checkCalls(message, i);
        if (problem) {
            return problem;
        }
        open = (message.tool_calls || []).map((call) => call.id);
    }
    return open.length ? `tool_call_ids did not have response messages: ${open}` : undefined;
}

function checkMessages(messages) {
    if (!Array.isArray(messages) || messages.length === 0) {
        return "Invalid 'messages': empty array.";
    }
    const roles = ['developer', 'system', 'user', 'assistant', 'tool'];
    const strange = messages.find((message) => !roles.includes(message.role));
    return strange ? `Invalid value: '${strange.role}'.` : checkOrder(messages);
}

function checkTools(tools) {
    if (tools !== undefined && tools.length === 0) {
        return "Invalid 'tools': empty array.";
    }
    const bad = (tools || []).find((tool) => tool.type !== 'function'
        || !/^[a-zA-Z0-9_-]{1,64}$/.test(tool.function.name)
        || tool.function.parameters.type !== 'object');
    return bad ? "Invalid 'tools[0]'." : undefined;
}

// [status, message] of a refusal; undefined when the request is valid.
function refuse(call) {
    const { body, request } = call;
    const [, key] = /^Bearer (.*)$/.exec(request.headers.authorization || '') || [];
    if (!key) {
        return [401, "You didn't provide an API key."];
    }
    if (key !== KEY) {
        return [401, `Incorrect API key provided: ${key}.`];
    }
    if (body === undefined) {
        return [400, 'We could not parse the JSON body of your request.'];
    }
    if (body.model === 'no-such-model') {
        return [404, `The model \`${body.model}\` does not exist or you do not have access to it.`];
    }
    const problem = checkMessages(body.messages) || checkTools(body.tools);
    return problem && [400, problem];
}

const textOf = (content) => (typeof content === 'string' ? content
    : (content || []).map((part) => part.text || '').join(''));

function planOf(messages) {
    const last = messages.map((message) => message.role).lastIndexOf('user');
    const results = messages.slice(last + 1).filter((message) => message.role === 'tool');
    const isLast = messages[messages.length - 1].role === 'tool';
    return script.plan(last < 0 ? '' : textOf(messages[last].content),
        isLast ? results.map((message) => textOf(message.content)) : []);
}

function countInput(messages) {
    return messages.map((message) => script.countWords(textOf(message.content)))
        .reduce((sum, count) => sum + count, 0);
}

function usageOf(call, plan) {
    const input = countInput(call.body.messages);
    const output = plan.deltas.length + plan.tools.length;
    return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

function makeCalls(plan) {
    return plan.tools.map((tool, i) => ({
        id: tool.id || `call_${Date.now().toString(36)}${i}`,
        type: 'function',
        function: { name: tool.name, arguments: script.argumentsOf(tool) },
    }));
}

const reasonOf = (plan) => plan.stopReason || (plan.tools.length ? 'tool_calls' : 'stop');

function head(call, object) {
    return {
        id: `chatcmpl-${Date.now().toString(36)}`,
        object,
        created: Math.floor(Date.now() / 1000),
        model: call.body.model,
        service_tier: 'default',
        system_fingerprint: 'fp_test',
    };
}

function makeCompletion(call, plan) {
    const calls = makeCalls(plan);
    return {
        ...head(call, 'chat.completion'),
        choices: [{
            index: 0,
            message: {
                role: 'assistant',
                content: plan.deltas.join('') || null,
                refusal: null,
                ...(calls.length ? { tool_calls: calls } : {}),
            },
            logprobs: null,
            finish_reason: reasonOf(plan),
        }],
        usage: usageOf(call, plan),
    };
}

const event = (value, isDelta) => ({ text: `data: ${JSON.stringify(value)}\n\n`, isDelta });

function streamCall(toolCall, index, plan, chunk) {
    const position = plan.quirks.no_index ? {} : { index };
    const first = {
        ...position,
        id: toolCall.id,
        type: 'function',
        function: { name: toolCall.function.name, arguments: '' },
    };
    const pieces = script.cut(toolCall.function.arguments, plan.argumentsSize);
    return [
        event(chunk({ tool_calls: [first] }), true),
        ...pieces.map((text) => event(
            chunk({ tool_calls: [{ ...position, function: { arguments: text } }] }), true)),
    ];
}

function makeEvents(call, plan) {
    const fields = head(call, 'chat.completion.chunk');
    const wantsUsage = call.body.stream_options && call.body.stream_options.include_usage;
    const withUsage = (value) => (wantsUsage && !plan.quirks.no_usage
        ? { ...value, usage: null } : value);
    const chunk = (delta, reason = null) => withUsage({
        ...fields, choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }] });
    return [
        event(chunk({ role: 'assistant', content: '', refusal: null })),
        ...plan.deltas.map((content) => event(chunk({ content }), true)),
        ...makeCalls(plan).flatMap((toolCall, i) => streamCall(toolCall, i, plan, chunk)),
        event(chunk({}, reasonOf(plan))),
        ...(wantsUsage && !plan.quirks.no_usage
            ? [event({ ...fields, choices: plan.quirks.null_choices ? null : [],
                usage: usageOf(call, plan) })] : []),
        ...(plan.quirks.no_done ? [] : [{ text: 'data: [DONE]\n\n' }]),
    ];
}

const extras = {
    garbled: 'data: {"id":"chatcmpl-1","choices":[{"del\n\n',
    error: ({ status, message }) => event(makeError(status, message)).text,
};

exports.answer = function answer(call) {
    const refusal = refuse(call);
    const plan = refusal ? { key: '' } : planOf(call.body.messages);
    log.note(call, plan.key);
    if (refusal) {
        call.json(refusal[0], makeError(...refusal));
        return;
    }
    if (plan.failure && !plan.failure.cut_after) {
        stream.fail(call, plan.failure, makeError);
        return;
    }
    if (plan.failure) {
        plan.cutAfter = plan.failure.cut_after;
    }
    if (call.body.stream) {
        stream.send(call, plan, makeEvents(call, plan), extras);
    } else {
        call.json(200, makeCompletion(call, plan));
    }
};
