// SPDX-License-Identifier: Apache-2.0
// The end of a stream: the final status of the run can be read before it. The
// SDK asks for the status when a stream has ended without an error, and
// reconnects while the run is pending.
import { collect, connect, newThread, say, scenario, upTo } from './tap.mjs';

const direct = connect();
const TIMES = 5;

const ENDS = [
    { how: 'succeeds', text: 'use clock {}', status: 'success' },
    { how: 'fails', text: 'fail', status: 'error' },
    { how: 'is cancelled', text: 'sleep 60000', status: 'interrupted' },
    { how: 'stops at a breakpoint', text: 'use clock {}', status: 'success',
        more: { interruptBefore: ['tools'] } },
];

// A client that notes its requests: of a run's record the status, of others the
// last segment of the path.
function connectNoting(notes) {
    return connect({ callerOptions: { fetch: async (url, init) => {
        const response = await fetch(url, init);
        const [last] = new URL(url).pathname.split('/').slice(-1);
        notes.push(/^[0-9a-f-]{36}$/.test(last) ? (await response.clone().json()).status : last);
        return response;
    } } });
}

// Reads a stream to its end; cancels a run that sleeps when it has sent values.
async function readAll(threadId, text, stream) {
    const events = [];
    for await (const event of stream) {
        events.push(event);
        if (text.startsWith('sleep') && events.length === 2) {
            await direct.runs.cancel(threadId, events[0].data.run_id);
        }
    }
    return events;
}

const SHAPES = {
    stream: async (client, threadId, { text, more }) => readAll(threadId, text,
        client.runs.stream(threadId, 'agent', { input: say(text), ...more })),
    joinStream: async (client, threadId, { text, more }) => {
        const run = await direct.runs.create(threadId, 'agent', { input: say(text), ...more });
        return readAll(threadId, text, client.runs.joinStream(threadId, run.run_id));
    },
};

async function play(read, end) {
    const threadId = await newThread(direct);
    const notes = [];
    const events = await read(connectNoting(notes), threadId, end);
    const { status } = await direct.runs.get(threadId, events[0].data.run_id);
    return { status, notes };
}

for (const end of ENDS) {
    for (const [shape, read] of Object.entries(SHAPES)) {
        scenario(`end of ${shape}: a run that ${end.how}`, async (t) => {
            const found = await Promise.all(upTo(TIMES).map(() => play(read, end)));
            t.is(found.map(({ status }) => status), upTo(TIMES).map(() => end.status),
                'the final status of the run can be read');
            const asked = end.status === 'error' ? [] : [end.status];
            t.is(found.map(({ notes }) => notes), upTo(TIMES).map(() => ['stream', ...asked]),
                'the SDK asks for the status once and does not reconnect');
        });
    }
}

scenario('end of a stateless run', async (t) => {
    const run = await direct.runs.create(null, 'agent', { input: say('use clock {}') });
    await collect(direct.runs.joinStream(null, run.run_id));
    t.is((await direct.runs.get(run.thread_id, run.run_id)).status, 'success',
        'the final status of the run can be read');
});

scenario('end of a run in a thread stream', async (t) => {
    const threadId = await newThread(direct);
    const abort = new AbortController();
    const found = [];
    const following = (async () => {
        for await (const { event, data } of direct.threads.joinStream(threadId, {
            signal: abort.signal, lastEventId: '-' })) {
            if (event === 'run_done') {
                const { status } = await direct.runs.get(threadId, data.run_id);
                found.push([data.status, status]);
            }
            if (found.length === ENDS.length) {
                abort.abort();
            }
        }
    })();
    for (const end of ENDS) {
        await SHAPES.stream(direct, threadId, end);
    }
    await following;
    t.is(found, ENDS.map(({ status }) => [status, status]), 'run_done follows the commit of the final status');
});

scenario('end of a wait and a join', async (t) => {
    const threadId = await newThread(direct);
    for (const { text, more, status } of ENDS.filter((end) => end.how !== 'is cancelled')) {
        await direct.runs.wait(threadId, 'agent', { input: say(text), raiseError: false, ...more });
        const [waited] = await direct.runs.list(threadId);
        t.is(waited.status, status, `the final status can be read after a wait: ${status}`);
        const run = await direct.runs.create(threadId, 'agent', { input: say(text), ...more });
        await direct.runs.join(threadId, run.run_id);
        t.is((await direct.runs.get(threadId, run.run_id)).status, status,
            `the final status can be read after a join: ${status}`);
    }
});
