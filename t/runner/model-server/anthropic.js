// SPDX-License-Identifier: Apache-2.0
// POST /v1/messages like Anthropic's service, including its refusals.
'use strict';

const log = require('./log');
const script = require('./script');
const stream = require('./stream');

const KEY = 'test-key-anthropic';

const types = {
    400: 'invalid_request_error',
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    500: 'api_error',
    529: 'overloaded_error',
};

function makeError(status, message) {
    const type = types[status] || 'api_error';
    return { type: 'error', error: { type, message: message || type }, request_id: 'req_test' };
}

function blocksOf(message) {
    return typeof message.content === 'string'
        ? [{ type: 'text', text: message.content }] : message.content;
}

const idsOf = (blocks, type, member) => blocks
    .filter((block) => block.type === type).map((block) => block[member]);

function checkBlock(block) {
    if (block.type === 'text' && !block.text.trim()) {
        return 'messages: text content blocks must contain non-whitespace text';
    }
    if (block.type === 'tool_use' && !/^[a-zA-Z0-9_-]+$/.test(block.id)) {
        return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'";
    }
    if (block.type === 'tool_use' && (typeof block.input !== 'object' || !block.input)) {
        return 'tool_use.input: Input should be a valid dictionary';
    }
    return undefined;
}

// The next message must have the results of all tool_use blocks, and no others.
function checkPairs(messages, i) {
    const uses = idsOf(blocksOf(messages[i]), 'tool_use', 'id');
    const results = i + 1 < messages.length
        ? idsOf(blocksOf(messages[i + 1]), 'tool_result', 'tool_use_id') : [];
    const missing = uses.filter((id) => !results.includes(id));
    if (missing.length) {
        return `messages.${i}: \`tool_use\` ids were found without \`tool_result\` blocks `
            + `immediately after: ${missing.join(', ')}`;
    }
    const strange = results.filter((id) => !uses.includes(id));
    if (strange.length) {
        return `messages.${i + 1}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: `
            + strange.join(', ');
    }
    return undefined;
}

function checkMessages(messages) {
    if (!Array.isArray(messages) || messages.length === 0) {
        return 'messages: at least one message is required';
    }
    for (let i = 0; i < messages.length; i++) {
        if (!['user', 'assistant'].includes(messages[i].role)) {
            return `messages.${i}.role: Input should be 'user' or 'assistant'`;
        }
        const bad = blocksOf(messages[i]).map(checkBlock).find(Boolean);
        if (bad) {
            return bad;
        }
        const unpaired = checkPairs(messages, i);
        if (unpaired) {
            return unpaired;
        }
    }
    return undefined;
}

function checkTools(tools) {
    for (const tool of tools || []) {
        if (!/^[a-zA-Z0-9_-]{1,128}$/.test(tool.name)) {
            return "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
        }
        if (!tool.input_schema || tool.input_schema.type !== 'object') {
            return 'tools.0.custom.input_schema.type: Field required';
        }
    }
    return undefined;
}

// [status, message] of a refusal; undefined when the request is valid.
function refuse(call) {
    const { body, request } = call;
    if (!request.headers['x-api-key']) {
        return [401, 'x-api-key header is required'];
    }
    if (request.headers['x-api-key'] !== KEY) {
        return [401, `invalid x-api-key: ${request.headers['x-api-key']}`];
    }
    if (request.headers['anthropic-version'] !== '2023-06-01') {
        return [400, 'anthropic-version: header is required'];
    }
    if (body === undefined) {
        return [400, 'The request body is not valid JSON'];
    }
    if (body.model === 'no-such-model') {
        return [404, `model: ${body.model}`];
    }
    if (!Number.isInteger(body.max_tokens) || body.max_tokens < 1) {
        return [400, 'max_tokens: Field required'];
    }
    const problem = checkMessages(body.messages) || checkTools(body.tools);
    return problem && [400, problem];
}

function promptOf(messages) {
    for (let i = messages.length - 1; i >= 0; i--) {
        const texts = messages[i].role === 'user' ? idsOf(blocksOf(messages[i]), 'text', 'text') : [];
        if (texts.length) {
            return texts[texts.length - 1];
        }
    }
    return '';
}

function resultsOf(messages) {
    const last = messages[messages.length - 1];
    return last.role === 'user'
        ? blocksOf(last).filter((block) => block.type === 'tool_result')
            .map((block) => (block.is_error ? 'ERROR ' : '')
                + (typeof block.content === 'string' ? block.content
                    : JSON.stringify(block.content)))
        : [];
}

// Texts after the last results count as a new prompt.
function planOf(messages) {
    const last = messages[messages.length - 1];
    const hasText = idsOf(blocksOf(last), 'text', 'text').length > 0;
    return script.plan(promptOf(messages), hasText ? [] : resultsOf(messages));
}

const makeId = (prefix, i) => `${prefix}_01${Date.now().toString(36)}${i}`;

function countInput(body) {
    return script.countWords(body.system || '')
        + body.messages.flatMap(blocksOf).map((block) => script.countWords(
            block.text || block.content || JSON.stringify(block.input || '')))
            .reduce((sum, count) => sum + count, 0);
}

function event(data, isDelta) {
    return { text: `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`, isDelta };
}

function makeMessage(call, plan) {
    const stopReason = plan.stopReason || (plan.tools.length ? 'tool_use' : 'end_turn');
    const text = plan.deltas.join('');
    return {
        id: makeId('msg', ''),
        type: 'message',
        role: 'assistant',
        model: call.body.model,
        content: [
            ...(text ? [{ type: 'text', text }] : []),
            ...plan.tools.map((tool, i) => ({
                type: 'tool_use',
                id: tool.id || makeId('toolu', i),
                name: tool.name,
                input: tool.raw === undefined ? tool.args || {} : {},
            })),
        ],
        stop_reason: stopReason,
        stop_sequence: plan.stopSequence,
        usage: {
            input_tokens: countInput(call.body),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: plan.quirks.cache_read || 0,
            output_tokens: plan.deltas.length + plan.tools.length,
        },
    };
}

function streamText(plan, index) {
    return [
        event({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } }),
        event({ type: 'ping' }),
        ...plan.deltas.map((text) => event(
            { type: 'content_block_delta', index, delta: { type: 'text_delta', text } }, true)),
        event({ type: 'content_block_stop', index }),
    ];
}

function streamTool(block, tool, plan, index) {
    const pieces = ['', ...script.cut(script.argumentsOf(tool), plan.argumentsSize)];
    return [
        event({
            type: 'content_block_start', index, content_block: { ...block, input: {} } }),
        ...pieces.map((text) => event({
            type: 'content_block_delta',
            index,
            delta: { type: 'input_json_delta', partial_json: text },
        }, true)),
        event({ type: 'content_block_stop', index }),
    ];
}

function makeEvents(message, plan) {
    const hasText = message.content.length > plan.tools.length;
    const blocks = message.content.slice(hasText ? 1 : 0);
    return [
        event({
            type: 'message_start',
            message: {
                ...message,
                content: [],
                stop_reason: null,
                stop_sequence: null,
                usage: { ...message.usage, output_tokens: 1 },
            },
        }),
        ...(hasText ? streamText(plan, 0) : []),
        ...blocks.flatMap((block, i) => streamTool(
            block, plan.tools[i], plan, i + (hasText ? 1 : 0))),
        event({
            type: 'message_delta',
            delta: { stop_reason: message.stop_reason, stop_sequence: message.stop_sequence },
            usage: { output_tokens: message.usage.output_tokens },
        }),
        event({ type: 'message_stop' }),
    ];
}

const extras = {
    garbled: 'event: content_block_delta\ndata: {"type":"content_block_del\n\n',
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
    const message = makeMessage(call, plan);
    if (call.body.stream) {
        stream.send(call, plan, makeEvents(message, plan), extras);
    } else {
        call.json(200, message);
    }
};
