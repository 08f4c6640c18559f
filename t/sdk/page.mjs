// SPDX-License-Identifier: Apache-2.0
// A page of another origin than the server's: the scenarios of the JavaScript SDK,
// bundled for browsers, and a stream read with fetch. The query of its address
// names the server and the proxy: ?server=URL&proxy=URL. The value of the promise
// window.finished is its TAP.
import { Client } from '@langchain/langgraph-sdk';
import { playAll, say, scenario, use } from './tap.mjs';

const address = new URLSearchParams(window.location.search);
const serverUrl = address.get('server');

// A browser has six connections to a server; scenarios that wait hold some.
const AT_ONCE = 4;
const NAMES = ['fetch', 'threads', 'background run', 'failing run', 'refused', 'interrupt_before',
    'all modes', 'joinStream', 'stream cut at 0', 'stream cut at 2000', 'stream cut at -2000',
    'stream cut at 1500,1,-2500', 'wait', 'client that leaves', 'stateless stream', 'thread stream'];

async function post(path, body) {
    return fetch(serverUrl + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': 'page-key' },
        body: JSON.stringify(body),
    });
}

scenario('fetch', async (t) => {
    const { thread_id: threadId } = await (await post('/threads', {})).json();
    const response = await post(`/threads/${threadId}/runs/stream`, {
        assistant_id: 'agent', input: say('sleep 60000'), stream_mode: 'messages-tuple' });
    t.is([response.type, response.status], ['cors', 200], 'a stream of another origin is allowed');
    const run = response.headers.get('content-location');
    t.ok(run && run.startsWith(`/threads/${threadId}/runs/`), 'the page sees Content-Location', run);
    t.is(response.headers.get('location'), `${run}/stream`, 'the page sees Location');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    // The text up to the pattern, or to the end.
    const readTo = async (pattern) => {
        let text = '';
        for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
            text += piece.value;
            if (pattern.test(text)) {
                break;
            }
        }
        return text;
    };
    const first = await readTo(/\n\n/);
    t.ok(/^event: metadata\n/.test(first), 'the stream begins with metadata', first);
    t.is((await (await fetch(serverUrl + run)).json()).status, 'pending',
        'the first event arrives while the run executes');
    const words = await readTo(/event: messages\n/);
    t.ok(/event: messages\n/.test(words), 'later events arrive while the run executes', words);
    await post(`${run}/cancel`, {});
    await readTo(/never/);
    t.is((await (await fetch(serverUrl + run)).json()).status, 'interrupted',
        'the stream ends when the run is cancelled');
    const missing = await fetch(`${serverUrl}/threads/no-such-thread`);
    t.is([missing.status, typeof (await missing.json()).detail], [404, 'string'],
        'the page sees errors');
});

window.finished = (async () => {
    use({ name: 'page', Client, serverUrl, proxyUrl: address.get('proxy') });
    await import('./topics.mjs');
    const lines = [];
    await playAll((line) => lines.push(line), { names: NAMES, atOnce: AT_ONCE });
    return lines.join('\n');
})();
