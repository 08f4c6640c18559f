// SPDX-License-Identifier: Apache-2.0
// Streams during which the server is restarted.
import { connect, ids, newThread, say, scenario, upTo } from './tap.mjs';

const STREAMS = 4;

scenario('restarted server', async (t) => {
    let requests = 0;
    let begun = 0;
    const client = connect({ callerOptions: { fetch: (...args) => {
        requests += 1;
        return fetch(...args);
    } } });
    const direct = connect();
    const threads = await Promise.all(upTo(STREAMS).map(() => newThread(direct)));
    const streams = await Promise.all(threads.map(async (threadId) => {
        const events = [];
        for await (const event of client.runs.stream(threadId, 'gated', {
            input: say('use gate {}'), streamMode: ['values', 'messages-tuple'] })) {
            events.push(event);
            begun += events.length === 5 ? 1 : 0;
            if (events.length === 5 && begun === STREAMS) {
                process.stdout.write('ready\n');
            }
        }
        return events;
    }));
    t.ok(requests > STREAMS, 'the restart cuts the streams', requests);
    t.ok(streams.every((events) => events.every((_, i) => ids(events)[i] === i)),
        'every event is received once and in order', streams.map(ids));
    t.is(streams.map((events) => events.at(-1).data.messages.length), threads.map(() => 4),
        'the last event of each stream has the answer');
    const runs = await Promise.all(threads.map((threadId) => direct.runs.list(threadId)));
    t.is(runs.map(([run]) => run.status), threads.map(() => 'success'),
        'the runs succeed');
});
