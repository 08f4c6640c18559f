// SPDX-License-Identifier: Apache-2.0
// Parts of the runner for JavaScript alone, which no application can look at: prints TAP for
// parts.t.
import assert from 'node:assert';
import { keepCached, takeCached } from '../../mod_agent/runners/node/cache.mjs';
import { Checkpoints } from '../../mod_agent/runners/node/checkpoints.mjs';
import { describeError } from '../../mod_agent/runners/node/errors.mjs';
import { Held } from '../../mod_agent/runners/node/held.mjs';
import { Job } from '../../mod_agent/runners/node/job.mjs';
import { Messages } from '../../mod_agent/runners/node/messages.mjs';
import { Output } from '../../mod_agent/runners/node/output.mjs';
import { keepNewest, Recent } from '../../mod_agent/runners/node/recent.mjs';
import { nextVersion, Records } from '../../mod_agent/runners/node/records.mjs';
import { describeGraph } from '../../mod_agent/runners/node/report.mjs';
import { States } from '../../mod_agent/runners/node/states.mjs';
import { toOp } from '../../mod_agent/runners/node/store_ops.mjs';
import { Stream } from '../../mod_agent/runners/node/stream.mjs';

const MIB = 1024 * 1024;
let count = 0;

function equal(found, expected, title) {
    count += 1;
    try {
        assert.deepStrictEqual(found, expected);
        console.log(`ok ${count} - javascript: ${title}`);
    } catch {
        console.log(`not ok ${count} - javascript: ${title}`);
        console.log(`# got ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
    }
}

function testCache() {
    const values = (name) => new Map([[name, name]]);
    const has = (name) => takeCached(name).has(name);
    keepCached('a', values('a'), 3 * MIB);
    keepCached('b', values('b'), 3 * MIB);
    keepCached('a', values('a'), 3 * MIB);
    keepCached('c', values('c'), 3 * MIB);
    equal(['a', 'b', 'c'].map(has), [true, false, true], 'cache: beyond the limit the thread that was kept longest ago is dropped');
    equal(has('a'), false, 'cache: values are taken once');
    keepCached('a', values('a'), 4 * MIB);
    keepCached('b', values('b'), 4 * MIB);
    equal(['a', 'b'].map(has), [true, true], 'cache: threads are kept up to the limit');
    keepCached('a', values('a'), MIB);
    keepCached('a', values('a'), 4 * MIB + 1);
    equal(has('a'), false, 'cache: a thread of more than half of it is not kept');
    keepCached('a', new Map(), 0);
    for (let number = 0; number < 3; number += 1) {
        keepCached(`n${number}`, values(`n${number}`), 3 * MIB);
        takeCached(`n${number}`);
    }
    keepCached('b', values('b'), 4 * MIB);
    keepCached('c', values('c'), 4 * MIB);
    equal(['b', 'c'].map(has), [true, true], 'cache: what was taken leaves room');
}

// Lines are written before a node only to keep what others have done: of a graph of one node that is one write of all.
async function testResults() {
    const serde = { dumpsTyped: async (value) => ['json', Buffer.from(JSON.stringify(value))] };
    const records = new Records({ send: async () => {} }, serde, { thread_id: 't' }, false, () => {});
    const place = (id, ns = '') => ({ configurable: { thread_id: 't', checkpoint_ns: ns, checkpoint_id: id } });
    const id = (number) => `01890000-0000-7000-8000-00000000000${number}`;
    const put = (number, source) => records.put(place(number > 1 ? id(number - 1) : undefined),
        { id: id(number), channel_values: { a: number } }, { source, step: number - 2 }, { a: number });
    const found = [];
    const note = async (promise) => {
        await promise;
        found.push(records.hasResults);
    };
    const input = put(1, 'input');
    await note(records.putWrites(place(id(1)), [['a', 1]], 'start'));
    await note(input);
    await note(put(2, 'loop'));
    equal(found, [false, false, false], 'results: the input of a graph is none');
    await note(records.putWrites(place(id(2)), [['a', 2]], 'node'));
    await note(put(3, 'loop'));
    equal(found.slice(3), [true, true], 'results: what a node has written is');
    const other = new Records({ send: async () => {} }, serde, { thread_id: 't' }, false, () => {});
    await other.putWrites(place(id(1), 'node:1'), [['a', 1]], 'start');
    equal(other.hasResults, true, 'results: a subgraph follows nodes');
}

function testHeld() {
    const held = new Held();
    const task = (name, more = {}) => ({ name, id: '1', ...more });
    ['one:1', 'two:1', 'three:1'].forEach((ns) => held.show([ns], ns, `of ${ns}`));
    held.show(['one:1'], 'one:1', 'newer');
    held.end(['one:1'], task('inner'));
    held.end([], task('two'));
    held.end([], task('three', { interrupts: [{}] }));
    equal(held.take().map(({ ns, payload, ends }) => [ns, payload, ends.length]), [['one:1', 'newer', 1], ['three:1', 'of three:1', 0]],
        'held: of a subgraph that keeps no state nothing is held when its task has ended');
    equal(held.take(), [], 'held: the others are taken once');
}

function chunkOf(id, text) {
    return { id, text, getType: () => 'ai', concat: (other) => chunkOf(id, text + other.text),
        toDict: () => ({ type: 'ai', data: { content: text } }) };
}

async function testMessages() {
    const sent = [];
    const take = () => sent.splice(0).map(([name]) => name);
    const messages = new Messages(async (...event) => sent.push(event));
    const chunk = (number, text) => chunkOf(`m${number}`, text);
    await messages.take(chunk(0, 'x'.repeat(40_000)), {});
    take();
    await messages.take(chunk(0, 'y'), {});
    equal(take(), [], 'messages: a chunk by which a message hardly grows is not shown yet');
    for (let number = 1; number < 256; number += 1) {
        await messages.take(chunk(number, 'x'), {});
    }
    take();
    await messages.take(chunk(0, 'z'), {});
    equal(take(), [], 'messages: as many as there may be are open');
    await messages.take(chunk(256, 'x'), {});
    equal(sent.at(-1)[1][0].text.slice(-3), 'xyz', 'messages: beyond that the rest of the oldest is shown');
    equal(take(), ['messages/metadata', 'messages/partial', 'messages/partial'], 'messages: after the new one');
    await messages.take(chunk(1, 'x'), {});
    equal(take(), ['messages/partial'], 'messages: the next one is still open');
    await messages.take(chunk(0, 'x'), {});
    equal(take()[0], 'messages/metadata', 'messages: the oldest is forgotten');
}

async function testEndsOfMessages() {
    const sent = [];
    const take = () => sent.splice(0).map(([name, [{ text }]]) => [name, text]);
    const messages = new Messages(async (...event) => sent.push(event));
    const begin = async (id) => {
        await messages.take(chunkOf(id, 'x'.repeat(40_000)), { langgraph_checkpoint_ns: `inner:1|${id}:2` });
        await messages.take(chunkOf(id, 'y'), {});
        sent.length = 0;
    };
    await begin('returned');
    await messages.endTask('inner:1|returned:2', { messages: [chunkOf('returned', 'all')] }, false);
    equal(take(), [['messages/complete', 'all']], 'messages: one that its task returns is complete');
    await messages.take(chunkOf('returned', 'z'), {});
    equal(take(), [], 'messages: a late chunk of it is not sent');
    await begin('kept');
    await messages.endTask('inner:1|kept:2', { notes: { $writes: [[1], [chunkOf('kept', 'both')]] } }, false);
    equal(take(), [['messages/complete', 'both']], 'messages: as one of several that it has written');
    await begin('failed');
    await messages.endTask('inner:1|failed:2', undefined, true);
    equal(take().map(([name, text]) => [name, text.slice(-2)]), [['messages/partial', 'xy']], 'messages: of a task that fails the rest is a part');
    await begin('dropped');
    await messages.endTask('inner:1|dropped:2', {}, false);
    equal(take(), [], 'messages: one that its task does not return may have more chunks');
    await begin('cancelled');
    await messages.take(chunkOf('dropped', 'z'), {});
    await messages.end();
    equal(take().map(([name, text]) => [name, text.slice(-3)]), [['messages/complete', 'xyz'], ['messages/partial', 'xxy']],
        'messages: it is complete at the end of the run, unless its task has not ended');
}

class Wire {
    #lines = [];

    write(line) {
        this.#lines.push(JSON.parse(line));
    }

    post() {}

    take() {
        return this.#lines.splice(0).map((line) => line.event ?? line.type);
    }
}

function makeOutput(wire) {
    return new Output(wire, { run_id: 'r', epoch: 1 }, { line: 8 * MIB, blob_part: 4 * MIB });
}

// The lines up to the end, with all the credit that they need.
function takeRest(wire, output) {
    const found = [];
    for (let taken = wire.take(); ; taken = wire.take()) {
        found.push(...taken.filter((name) => name !== 'want'));
        if (!taken.includes('want')) {
            return found;
        }
        output.takeGo();
    }
}

async function testOutput() {
    const wire = new Wire();
    const output = makeOutput(wire);
    const send = (event, size = 1, more = {}) => output.send('event', { event, data: 'x'.repeat(size), ...more });
    const sent = [send('long', 300000), send('custom'), send('error'), send('values', 1, { checkpoint_id: 'c' }), send('values'),
        send('updates'), output.send('checkpoint', {})];
    equal(wire.take(), ['want'], 'output: a long line waits for credit, and all after it');
    output.cancel();
    await Promise.all([sent[1], sent[4], sent[5]]);
    send('custom');
    wire.write('{"type":"want"}');
    const rest = takeRest(wire, output);
    await Promise.all(sent);
    equal(rest, ['long', 'error', 'values', 'checkpoint'],
        'output: a cancel drops events, except the one with requested credit, error, and values of a checkpoint');

    const other = makeOutput(wire);
    for (let number = 0; number < 7; number += 1) {
        other.send('event', { event: `e${number}`, data: 'x'.repeat(60000) });
    }
    equal(wire.take(), ['e0', 'e1', 'e2', 'e3', 'want'], 'output: lines have free credit at first');
    other.cancel();
    other.takeGo();
    equal(wire.take(), ['e4'], 'output: a line whose credit was requested is kept by a cancel');
}

// Callers that give up, as with Promise.race(): their records are open until their replies come.
async function testAcknowledgements() {
    const lines = [];
    const output = makeOutput({ write: (line) => lines.push(JSON.parse(line)) });
    const turnOfLoop = () => new Promise((resolve) => {
        setImmediate(resolve);
    });
    const callers = Array.from({ length: 40 }, () => output.sendAcknowledged('put', {}));
    await Promise.race([...callers.slice(16), turnOfLoop()]);
    equal(lines.length, 16, 'output: 16 records are open at most, also if their callers do not wait for the replies');
    output.takeReply({ id: lines[0].ack, ok: true });
    await turnOfLoop();
    equal(lines.length, 17, 'output: the reply to a record makes room for the next one, also if its caller does not wait');
    output.cancel();
    await Promise.all(callers);
    equal(lines.slice(17).map(({ ack }) => ack), Array.from({ length: 23 }, () => undefined),
        'output: a cancelled run sends the records of the callers that wait, without acknowledgement');
}

async function testCheckpoints() {
    for (const most of [256, 257]) {
        const lines = [];
        const checkpoints = new Checkpoints({ send: async (type, members) => lines.push(members) });
        const value = { count: 1 };
        for (let number = 0; number < most; number += 1) {
            checkpoints.capture(`n${number}`, `c${number}`, null, { value });
            value.count = number === 0 ? 2 : value.count;
        }
        await checkpoints.send({ ns: 'n0', id: 'c0', parent: null, values: { value }, next: [], tasks: [], metadata: {} });
        equal(lines[0].values, { value: { count: most === 256 ? 1 : 2 } },
            `checkpoints: of ${most} that are put the first is sent as it ${most === 256 ? 'was' : 'is'}`);
    }
    const checkpoints = new Checkpoints({ send: () => undefined });
    const place = { ns: '', next: [], tasks: [], metadata: {} };
    checkpoints.send({ ...place, id: 'c0', parent: null, values: { list: [1] } });
    assert.throws(() => checkpoints.send({ ...place, id: 'c1', parent: 'c0', values: { list: [1, 2, 3n] } }), /BigInt/);
    equal(true, true, 'checkpoints: no element that is added to a list may be one that JSON cannot hold');
}

// A promise takes time for each chunk of the library.
function testStream() {
    const output = makeOutput(new Wire());
    const stream = new Stream({ message: { stream_modes: ['custom', 'values'] }, output, checkpoints: new Checkpoints(output), records: {},
        configurable: () => ({}), metadata: () => ({}) });
    equal([stream.take([[], 'custom', 1]), stream.take([[], 'values', {}])], [undefined, undefined], 'stream: a chunk whose lines have credit needs no wait');
    const waits = stream.take([[], 'custom', 'x'.repeat(MIB)]);
    equal(waits instanceof Promise, true, 'stream: one whose lines have none needs one');
}

// A graph of which the library cannot tell one thing: a report has the others.
async function testReports() {
    const schema = { getJsonSchema: () => ({ type: 'object' }) };
    const fail = () => {
        throw new Error('not today');
    };
    const logged = [];
    const described = async (members) => {
        const graph = { builder: { _schemaRuntimeDefinition: schema }, *getSubgraphs() {},
            getGraphAsync: async () => ({ toJSON: () => ({ nodes: [], edges: [] }) }), ...members };
        process.stderr.write = (text) => logged.push(text.split('\n')[0]);
        const { schemas, drawing, has_subgraphs: hasSubgraphs, factory } = await describeGraph(
            { name: 'g', isFactory: false, use: async () => ({ graph, library: {} }) });
        delete process.stderr.write;
        return [Object.keys(schemas ?? {}).length, drawing, hasSubgraphs, factory];
    };
    const drawing = { nodes: [], edges: [] };
    equal(await described({}), [3, drawing, false, false], 'reports: a graph is described by its schemas, its drawing, and whether it has subgraphs');
    equal(await described({ getGraphAsync: fail }), [3, null, false, false], 'reports: a graph that cannot be drawn has schemas');
    equal(await described({ getSubgraphs: fail }), [3, drawing, true, false], 'reports: a graph whose subgraphs cannot be listed may have some');
    equal(await described({ builder: { get _inputRuntimeDefinition() { return fail(); } } }), [0, drawing, false, false],
        'reports: a graph without schemas has a drawing');
    equal(logged, ['nodes and edges', 'list of subgraphs', 'schemas'].map((what) => `graph g has no ${what}: Error: not today`),
        'reports: the log says what a graph does not have, and why');
}

// A cancel waits longer for a run that is sending a state.
async function testStates() {
    const known = { lastPut: () => ({ id: 'b', parent: 'a' }), unshown: () => [], noteShown() {} };
    const found = [];
    const run = { isShowing: false, message: {}, records: { known, reuse() {} }, noteFailure() {},
        readState: async () => ({ values: {}, next: [], tasks: [], metadata: {} }),
        checkpoints: { lastId: () => 'a', send() {
            found.push(run.isShowing);
            throw new Error('too large');
        } } };
    await new States(run).sendHead().catch(({ message }) => found.push(message));
    equal([...found, run.isShowing], [true, 'too large', false], 'states: a state that cannot be sent is not being sent after its error');
}

function testStoreOps() {
    const errors = [-1, 1.5, 2147483648].map((limit) => {
        try {
            return toOp({ namespacePrefix: [], limit }).limit;
        } catch ({ name, message }) {
            return `${name}: ${message}`;
        }
    });
    equal(errors, Array.from({ length: 3 }, () => 'ValueError: limit is an integer from 0 to 2147483647'),
        'store: the error of a limit has the least and the greatest');
    equal(toOp({ namespacePrefix: [], limit: 2147483647 }).limit, 2147483647, 'store: the greatest limit is accepted');
}

function testRecent() {
    const last = new Map();
    keepNewest(last, '', 0);
    for (let number = 0; number < 255; number += 1) {
        keepNewest(last, `n${number}`, number);
    }
    keepNewest(last, 'n0', 0);
    equal(last.size, 256, 'recent: as many namespaces as there may be are kept');
    keepNewest(last, 'one more', 0);
    equal([last.size, ...['', 'n0', 'n1'].map((ns) => last.has(ns))], [256, true, true, false],
        "recent: then the one that was stored longest ago is dropped, never the root's");
    const recent = new Recent(2);
    [...'abcd'].forEach((text) => recent.add(text));
    equal([...'acd'].map((text) => recent.has(text)), [false, true, true], 'recent: of many strings the last ones are known');
    const other = new Recent(2);
    [...'ab'].forEach((text) => other.add(text));
    const isRenewed = other.has('a');
    [...'cd'].forEach((text) => other.add(text));
    equal([isRenewed, other.has('a'), other.has('b')], [true, true, false], 'recent: a string that is found is one of the last ones again');
}

// Longer ones would end the runner, with the runs of others.
async function testRequests() {
    const lines = [];
    const output = makeOutput({ write: (line) => lines.push(JSON.parse(line)) });
    const ask = async (op, bytes) => {
        const left = bytes - Buffer.byteLength(JSON.stringify({ filter: '' }));
        const asked = output.request(op, { filter: 'x'.repeat(left) }).then(() => '', (error) => error.name);
        await new Promise((resolve) => {
            setImmediate(resolve);
        });
        lines.filter(({ type }) => type === 'want').forEach(() => output.takeGo());
        const sent = lines.splice(0).find(({ type }) => type === 'request');
        if (sent) {
            output.takeReply({ id: sent.id, ok: true, result: {} });
        }
        return `${await asked}${sent ? 'sent' : ''}`;
    };
    equal([await ask('checkpoint.list', 4096), await ask('checkpoint.list', 4097), await ask('checkpoint.list', 99)],
        ['sent', 'ValueError', 'sent'], 'requests: arguments that are too long are an error of the caller, and not sent');
    equal([await ask('store', 4 * MIB), await ask('store', 4 * MIB + 1)], ['sent', 'ValueError'],
        'requests: those to the store may be longer');
    const asked = [];
    const delta = new Records({ send() {}, post() {}, async request(op, args) {
        asked.push(Buffer.byteLength(JSON.stringify(args)));
        return { result: {}, cursor: null };
    } }, {}, { thread_id: 't' }, false);
    await delta.delta({ configurable: { thread_id: 't', checkpoint_ns: 'n'.repeat(2000), checkpoint_id: '01890000-0000-7000-8000-000000000001' } },
        Array.from({ length: 60 }, (_, number) => `${'c'.repeat(60)}${number}`)).catch(() => {});
    equal([asked.length > 1, Math.max(...asked) <= 4096], [true, true], 'requests: those for histories have room for a long namespace');
}

// A reply in parts: the newest writes first, the list of the seed and a value of it in two parts each.
async function testHistory() {
    const [old, fresh] = [{ n: 'old' }, { n: 'fresh' }];
    const items = ['a', 'b', 'c'].map((n) => ({ n }));
    const blob = (digest, value, from, until) => ({ digest, value_type: 'json', text: JSON.stringify(value).slice(from, until) });
    const replies = {
        'checkpoint.delta': [
            { items: { writes: [['t2', 'fresh', '', 0]] }, other: { writes: [] } },
            { items: { writes: [['t1', 'old', '', 0]], seed: { list: { keep: 0, items: ['a', 'b'] } } }, other: {} },
            { items: { seed: { list: { keep: 2, items: ['c'] } } }, other: { seed: 'a' } }],
        'blob.get': [{ blobs: [blob('fresh', fresh), blob('old', old), blob('a', items[0]), blob('b', items[1], 0, 4)] },
            { blobs: [blob('b', items[1], 4), blob('c', items[2])] }],
    };
    const serde = { loadsTyped: async (type, bytes) => JSON.parse(bytes) };
    const records = new Records({ async request(op, args, cursor) {
        const part = Number(cursor);
        return { result: replies[op][part], cursor: part + 1 < replies[op].length ? String(part + 1) : null };
    } }, serde, { thread_id: 't' }, false, () => {});
    const found = await records.delta(
        { configurable: { thread_id: 't', checkpoint_id: '01890000-0000-7000-8000-000000000001' } }, ['items', 'other', 'none']);
    equal(found.items.writes, [['t1', 'items', old], ['t2', 'items', fresh]], 'history: the writes of a later part precede those of an earlier one');
    equal(found.items.seed, items, 'history: the list of a seed continues in the next part');
    equal(found.other, { writes: [], seed: items[0] }, 'history: a seed may come in the last part');
    equal(found.none, { writes: [] }, 'history: a channel without writes and without a seed');
}

function configurable(given, context) {
    const job = new Job({ run_id: 'r', epoch: 1, thread_id: 't', graph_id: 'g', assistant_id: 'a', config: { configurable: given }, context },
        undefined, {}, {});
    return job.configurable();
}

function testConfig() {
    const ids = { run_id: 'r', thread_id: 't', graph_id: 'g', assistant_id: 'a' };
    const others = Object.fromEntries([...Object.keys(ids), 'checkpoint_ns', 'checkpoint_id', 'checkpoint_map'].map((name) => [name, 'other']));
    equal(configurable(others), ids, 'config: neither a client nor a context names another run, thread or checkpoint');
    equal(configurable({}, others), ids, 'config: a context of the same names changes nothing');
    equal(configurable({ __y: 1 }, { __x: 1 }), ids, 'config: names of the library are the library\'s');
    equal(configurable({ langgraph_auth_permissions: ['s'] }, { langgraph_auth_user_id: 'c', x: 1 }),
        { ...ids, x: 1, langgraph_auth_permissions: ['s'] }, 'config: the server names the user, no context does');
    equal(['', 'u'].map((name) => configurable({ user_id: name }).user_id), [undefined, 'u'], 'config: without a user there is no member');
    equal(configurable({ x: 'own' }, { x: 'context', y: 1 }), { ...ids, x: 'own', y: 1 }, 'config: its members precede those of the context');
    const contextOf = (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, i]));
    equal([256, 257].map((count) => Object.keys(configurable({}, contextOf(count))).length), [260, 4],
        'config: a context of 257 members is not copied');
}

function testVersions() {
    const number = (version) => version.slice(0, 32);
    const found = Array.from({ length: 20 }, () => nextVersion(9));
    const after = nextVersion(found[0]);
    equal([number(nextVersion()), ...new Set(found.map(number)), number(after)], [1, 10, 11].map((one) => String(one).padStart(32, '0')),
        'versions: each is one more');
    equal([new Set(found).size, [after, ...found].sort().at(-1) === after], [20, true],
        'versions: those of two branches differ, a later one is greater');
}

function testErrors() {
    const { message } = describeError(new Error('x'.repeat(2001)));
    equal([message.length, message.slice(-2)], [2000, 'x…'], 'errors: a message that is cut ends in …');
    equal(describeError(new Error('x'.repeat(2000))).message.replaceAll('x', ''), '', 'errors: one of 2,000 characters is whole');
}

testErrors();
testConfig();
testVersions();
testCache();
testHeld();
await testMessages();
await testEndsOfMessages();
await testOutput();
await testAcknowledgements();
await testCheckpoints();
testStream();
testRecent();
await testReports();
await testStates();
testStoreOps();
await testResults();
await testRequests();
await testHistory();
console.log(`1..${count}`);
