// SPDX-License-Identifier: Apache-2.0
// Calls the model test server with the vendors' own clients, to show that it is
// compatible with them; prints TAP. Arguments: the folder where the clients are
// installed, and the server's address.
'use strict';

const path = require('path');
const { isDeepStrictEqual } = require('util');
const load = require('module').createRequire(path.join(process.argv[2], 'package.json'));
const Anthropic = load('@anthropic-ai/sdk');
const OpenAI = load('openai');
const url = process.argv[3];

let count = 0;

function ok(isGood, title, found) {
    count += 1;
    process.stdout.write(`${isGood ? 'ok' : 'not ok'} ${count} - ${title}\n`);
    if (!isGood) {
        process.stdout.write(`#      got: ${JSON.stringify(found)}\n`);
        process.exitCode = 1;
    }
}

function is(found, wanted, title) {
    ok(isDeepStrictEqual(found, wanted), title, found);
}

async function errorOf(promise) {
    try {
        await promise;
    } catch (error) {
        return error;
    }
    return undefined;
}

const prompt = (script) => `script ${JSON.stringify(script)}`;
const text = 'Grüße, 世界 🌍 "quoted" \\ back\nslash';
const args = { city: 'Zürich 🏔', deep: { list: [1, 2.5, null], quote: 'a"b\\c' } };
const weather = { type: 'object', properties: { city: { type: 'string' } } };

const anthropic = new Anthropic({ apiKey: 'test-key-anthropic', baseURL: url, maxRetries: 0 });

function ask(script, more = {}) {
    return {
        model: 'claude-test',
        max_tokens: 100,
        messages: [{ role: 'user', content: prompt(script) }],
        tools: [{ name: 'weather', description: 'Weather', input_schema: weather }],
        ...more,
    };
}

const final = (script, more) => anthropic.messages.stream(ask(script, more)).finalMessage();

async function checkAnthropicText() {
    for (const split of [0, 1, 2, 3, 7]) {
        const message = await final({ text, split });
        is(message.content, [{ type: 'text', text }], `anthropic: text in pieces of ${split}`);
    }
    for (const lineEnd of ['\r\n', '\r']) {
        const message = await final({ text, split: 1, line_end: lineEnd });
        is(message.content[0].text, text, `anthropic: lines end with ${JSON.stringify(lineEnd)}`);
    }
    const whole = await anthropic.messages.create(ask({ text }));
    is(whole.content, [{ type: 'text', text }], 'anthropic: text without a stream');
    const stopped = await final({ text: 'a b', stop_reason: 'stop_sequence', stop_sequence: '#' });
    is([stopped.stop_reason, stopped.stop_sequence], ['stop_sequence', '#'],
        'anthropic: an answer has stop_reason and stop_sequence');
    is(stopped.usage.output_tokens, 2, 'anthropic: usage has the output tokens');
    ok(stopped.usage.input_tokens > 1, 'anthropic: usage has the input tokens', stopped.usage);
}

async function checkAnthropicTools() {
    const script = { text: 'Let me see.', tools: [{ name: 'weather', args }, { name: 'weather' }] };
    for (const split of [0, 1, 5]) {
        const message = await final({ ...script, split, arguments_size: 1 });
        is(message.content.map((block) => block.input), [undefined, args, {}],
            `anthropic: tool input in pieces of ${split}`);
        is(message.stop_reason, 'tool_use', 'anthropic: stop_reason of a call is tool_use');
    }
    const asked = await final(script);
    const results = asked.content.slice(1).map((block) => ({
        type: 'tool_result', tool_use_id: block.id, content: 'rain' }));
    const messages = [...ask(script).messages, { role: 'assistant', content: asked.content }];
    const answered = await final(script, { messages: [...messages, { role: 'user', content: results }] });
    is(answered.content[0].text, 'The tools said: rain | rain', 'anthropic: the model reads tool results');
    const dangling = await errorOf(final(script, {
        messages: [...messages, { role: 'user', content: 'and now?' }] }));
    ok(dangling instanceof Anthropic.BadRequestError, 'anthropic: a call without result is refused',
        dangling);
}

async function checkAnthropicErrors() {
    const failing = (key, failures) => ask({ key, text: 'fine', failures });
    const patient = anthropic.withOptions({ maxRetries: 1 });
    const limit = { status: 429, headers: { 'retry-after': '0' } };
    const retried = await patient.messages.create(failing('a1', [limit]));
    is(retried.content[0].text, 'fine', 'anthropic: status 429 with Retry-After is retried');
    const limited = await errorOf(anthropic.messages.create(failing('a2', [limit])));
    ok(limited instanceof Anthropic.RateLimitError, 'anthropic: status 429 is a RateLimitError', limited);
    const overloaded = await errorOf(anthropic.messages.create(failing('a3', [{ status: 529 }])));
    is([overloaded.status, overloaded.error.error.type], [529, 'overloaded_error'], 'anthropic: status 529 is an overloaded_error');
    const wrong = new Anthropic({ apiKey: 'wrong', baseURL: url, maxRetries: 0 });
    ok(await errorOf(wrong.messages.create(ask({}))) instanceof Anthropic.AuthenticationError,
        'anthropic: a wrong key is an AuthenticationError');
    ok(await errorOf(anthropic.messages.create(ask({}, { model: 'no-such-model' })))
        instanceof Anthropic.NotFoundError, 'anthropic: an unknown model is a NotFoundError');
    ok(await errorOf(final({ text, cut_after: 500 })), 'anthropic: a stream that is cut is an error');
    ok(await errorOf(final({ text, garble_after: 1 })), 'anthropic: malformed JSON is an error');
    const inside = await errorOf(final({ text, error_after: { count: 1, status: 529 } }));
    ok(/overloaded_error/.test(inside && inside.message), 'anthropic: an error inside the stream is an error', inside);
    const empty = await errorOf(anthropic.messages.create({ ...ask({}), messages: [] }));
    ok(empty instanceof Anthropic.BadRequestError, 'anthropic: no messages are refused', empty);
}

const openai = new OpenAI({ apiKey: 'test-key-openai', baseURL: `${url}/v1`, maxRetries: 0 });

function complete(script, more = {}) {
    return {
        model: 'gpt-test',
        messages: [{ role: 'user', content: prompt(script) }],
        tools: [{ type: 'function', function: { name: 'weather', parameters: weather } }],
        ...more,
    };
}

const streamed = (script, more) => openai.chat.completions.stream({
    ...complete(script, more), stream_options: { include_usage: true } }).finalChatCompletion();

async function checkOpenaiText() {
    for (const split of [0, 1, 2, 3, 7]) {
        const completion = await streamed({ text, split });
        is(completion.choices[0].message.content, text, `openai: text in pieces of ${split}`);
        is(completion.choices[0].finish_reason, 'stop', 'openai: finish_reason of a text is stop');
    }
    const counted = await streamed({ text: 'a b c' });
    is([counted.usage.completion_tokens, counted.usage.total_tokens > 4], [3, true], 'openai: usage has the tokens');
    const whole = await openai.chat.completions.create(complete({ text }));
    is(whole.choices[0].message.content, text, 'openai: text without a stream');
}

async function checkOpenaiTools() {
    const script = { text: '', tools: [{ name: 'weather', args }, { name: 'weather' }] };
    for (const split of [0, 1, 5]) {
        const completion = await streamed({ ...script, split, arguments_size: 1 });
        const calls = completion.choices[0].message.tool_calls;
        is(calls.map((call) => JSON.parse(call.function.arguments)), [args, {}],
            `openai: arguments in pieces of ${split}`);
        is(completion.choices[0].finish_reason, 'tool_calls', 'openai: finish_reason of a call is tool_calls');
    }
    const asked = (await streamed(script)).choices[0].message;
    const history = [...complete(script).messages,
        { role: 'assistant', content: null, tool_calls: asked.tool_calls }];
    const results = asked.tool_calls.map((call) => ({
        role: 'tool', tool_call_id: call.id, content: 'rain' }));
    const answered = await streamed(script, { messages: [...history, ...results] });
    is(answered.choices[0].message.content, 'The tools said: rain | rain', 'openai: the model reads tool results');
    const dangling = await errorOf(streamed(script, {
        messages: [...history, { role: 'user', content: 'and now?' }] }));
    ok(dangling instanceof OpenAI.BadRequestError, 'openai: a call without result is refused', dangling);
}

async function checkOpenaiErrors() {
    const failing = (key, failures) => complete({ key, text: 'fine', failures });
    const patient = openai.withOptions({ maxRetries: 1 });
    const limit = { status: 429, headers: { 'retry-after': '0' } };
    const retried = await patient.chat.completions.create(failing('o1', [limit]));
    is(retried.choices[0].message.content, 'fine', 'openai: status 429 with Retry-After is retried');
    const limited = await errorOf(openai.chat.completions.create(failing('o2', [limit])));
    ok(limited instanceof OpenAI.RateLimitError, 'openai: status 429 is a RateLimitError', limited);
    const wrong = new OpenAI({ apiKey: 'wrong', baseURL: `${url}/v1`, maxRetries: 0 });
    ok(await errorOf(wrong.chat.completions.create(complete({}))) instanceof OpenAI.AuthenticationError,
        'openai: a wrong key is an AuthenticationError');
    ok(await errorOf(openai.chat.completions.create(complete({}, { model: 'no-such-model' })))
        instanceof OpenAI.NotFoundError, 'openai: an unknown model is a NotFoundError');
    ok(await errorOf(streamed({ text, cut_after: 500 })), 'openai: a stream that is cut is an error');
    ok(await errorOf(streamed({ text, garble_after: 1 })), 'openai: malformed JSON is an error');
    const inside = await errorOf(streamed({ text, error_after: { count: 1, status: 500 } }));
    ok(inside instanceof OpenAI.APIError, 'openai: an error inside the stream is an APIError', inside);
}

async function main() {
    await checkAnthropicText();
    await checkAnthropicTools();
    await checkAnthropicErrors();
    await checkOpenaiText();
    await checkOpenaiTools();
    await checkOpenaiErrors();
    process.stdout.write(`1..${count}\n`);
}

main().catch((error) => {
    process.stdout.write(`Bail out! ${error.stack.replace(/\n/g, ' ')}\n`);
    process.exitCode = 1;
});
