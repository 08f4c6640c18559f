// SPDX-License-Identifier: Apache-2.0
// Requests of three pages to a server, in headless Chromium: one of another origin,
// one whose name resolves to the server (DNS rebinding: two names, one address), and
// one of an origin that AgentAllowOrigin names. Takes the address of the limiter's
// status page. Prints TAP.
import http from 'node:http';
import { Browser, evaluate } from './chromium.mjs';

const server = process.env.AGENT_TEST_URL;
const [status] = process.argv.slice(2);
const { port } = new URL(server);
const { port: statusPort } = new URL(status);

// Shared by the scripts below; runs in the page.
const PRELUDE = `
    const resultOf = (answer) => answer.then(
        (response) => response.type === 'opaque' ? 'opaque' : response.status,
        () => 'failed');
    const makeForm = (action, enctype, fields) => {
        const form = document.createElement('form');
        Object.assign(form, { action, enctype, method: 'POST' });
        for (const [name, value] of Object.entries(fields)) {
            const input = document.createElement('input');
            Object.assign(input, { name, value, type: 'hidden' });
            form.append(input);
        }
        document.documentElement.append(form);
        return form;
    };
    // A form of text/plain whose text is JSON.
    const makeText = (action, json) => makeForm(action, 'text/plain',
        { [JSON.stringify(json).slice(0, -1) + ',"metadata":{"a":"']: '"}}' });
    // Sends a form and waits for the response in a frame.
    const send = (form) => new Promise((resolve) => {
        const frame = document.createElement('iframe');
        frame.name = 'frame' + Math.random();
        form.target = frame.name;
        document.documentElement.append(frame);
        frame.onload = () => resolve('sent');
        form.submit();
    });
    const follow = (url) => new Promise((resolve) => {
        const source = new EventSource(url);
        const end = (what) => { source.close(); resolve(what); };
        source.onerror = () => end('failed');
        for (const name of ['metadata', 'values', 'message']) {
            source.addEventListener(name, () => end('read'));
        }
    });
    const leave = async (url) => {
        const left = new AbortController();
        await resultOf(fetch(url, { mode: 'no-cors', signal: left.signal }));
        left.abort();
    };`;

// ---- TAP ----

let count = 0;

function is(got, wanted, title) {
    count += 1;
    const [a, b] = [got, wanted].map((value) => JSON.stringify(value));
    process.stdout.write(`${a === b ? '' : 'not '}ok ${count} - ${title}\n`);
    if (a !== b) {
        process.stdout.write(`# ${a} instead of ${b}\n`);
    }
}

// ---- requests of another client than a page ----

async function call(method, path, body) {
    const answer = await fetch(server + path, {
        method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
    return answer.json().catch(() => null);
}

const BODY = { assistant_id: 'agent', input: { messages: [{ role: 'user', content: 'sleep 600000' }] } };

async function countRuns(threadId) {
    return (await call('GET', `/threads/${threadId}/runs?limit=100`)).length;
}

async function left() {
    return (await (await fetch(`${status}?path=/counted&ip=127.0.0.1`)).json()).remaining;
}

// ---- the pages ----

// Answers everything with an empty page; returns its port.
function servePages() {
    const pages = http.createServer((request, response) => {
        response.setHeader('content-type', 'text/html');
        response.end('<!doctype html><title>page</title>');
    });
    return new Promise((resolve) => {
        pages.listen(0, '127.0.0.1', () => resolve(pages.address().port));
    });
}

const run = (page, script) => evaluate(page, `(async () => { ${PRELUDE}\n${script} })()`);

async function playForeign(browser, page, origin, { threadId, path }) {
    const target = `${server}/threads/${threadId}/runs`;
    const body = JSON.stringify(BODY);
    await browser.navigate(page, origin);
    is(await run(page, `return send(makeText('${target}', ${body}))`), 'sent',
        'another origin: the browser sends a form');
    is(await run(page, `return resultOf(fetch('${target}', { method: 'POST', mode: 'no-cors', body: '${body}' }))`),
        'opaque', 'another origin: the browser sends a request without CORS');
    is(await run(page, `return navigator.sendBeacon('${target}', '${body}')`), true,
        'another origin: the browser sends a beacon');
    is(await run(page, `return resultOf(fetch('${target}', { method: 'POST', body: '${body}',
        headers: { 'content-type': 'application/json' } }))`), 'failed',
        'another origin: a request with JSON fails');
    is(await run(page, `return resultOf(fetch('${server}${path}', { method: 'DELETE' }))`), 'failed',
        'another origin: DELETE fails');
    is(await run(page, `return resultOf(fetch('${server}/info'))`), 'failed',
        'another origin: no response can be read');
    is(await run(page, `return follow('${server}${path}/stream')`), 'failed',
        'another origin: no stream can be read');
    await run(page, `return leave('${server}${path}/stream?cancel_on_disconnect=true')`);
    is((await call('GET', path)).status, 'pending',
        'another origin: a client that disconnects cancels no run');
    await browser.load(() => run(page, `makeText('${target}', ${body}).submit()`));
    is(/cross_site_request/.test(await evaluate(page, 'document.documentElement.innerText')), true,
        'another origin: the response to its form is the refusal');
    is(await countRuns(threadId), 1, 'another origin: no request has created a run');
}

async function playRebound(browser, page, { threadId, path }) {
    await browser.navigate(page, `http://rebind.example:${port}/ok`);
    is(await evaluate(page, 'location.origin'), `http://rebind.example:${port}`,
        'DNS rebinding: the name of a page leads to the server');
    is(await run(page, `return (await (await fetch('/threads/${threadId}/state')).json()).code`),
        'misdirected_request', 'DNS rebinding: a thread cannot be read');
    is(await run(page, `return resultOf(fetch('/threads/${threadId}/runs', { method: 'POST',
        body: '${JSON.stringify(BODY)}', headers: { 'content-type': 'application/json' } }))`), 421,
        'DNS rebinding: a run cannot be created');
    is(await run(page, `return resultOf(fetch('/runs/cancel', { method: 'POST', body: '{"status":"all"}',
        headers: { 'content-type': 'application/json' } }))`), 421,
        'DNS rebinding: runs cannot be cancelled');
    is(await run(page, `return follow('${path}/stream')`), 'failed',
        'DNS rebinding: a stream cannot be read');
    is([await countRuns(threadId), (await call('GET', path)).status], [1, 'pending'],
        'DNS rebinding: the runs are unchanged');
}

async function playAllowed(browser, page, origin, { threadId, path }, title) {
    await browser.navigate(page, origin);
    is(await run(page, `return resultOf(fetch('${server}/threads/${threadId}/runs?limit=1'))`), 200,
        `${title} can read`);
    is(await run(page, `return resultOf(fetch('${server}/threads', { method: 'POST', body: '{}',
        headers: { 'content-type': 'application/json', 'x-api-key': 'k' } }))`), 200,
        `${title} can write`);
    is(await run(page, `return follow('${server}${path}/stream')`), 'read',
        `${title} can read a stream`);
}

const RESET = { action: 'reset', ip: '127.0.0.1' };

async function playStatus(browser, page, origin) {
    const before = await left();
    const form = `'application/x-www-form-urlencoded', ${JSON.stringify(RESET)}`;
    const query = new URLSearchParams(RESET);
    await browser.navigate(page, origin);
    await run(page, `return send(makeForm('${status}', ${form}))`);
    await run(page, `return resultOf(fetch('${status}', { method: 'POST', mode: 'no-cors',
        body: new URLSearchParams(${JSON.stringify(RESET)}) }))`);
    is(await run(page, `return resultOf(fetch('${status}?${query}', { method: 'POST' }))`), 'failed',
        'status page: a page of another origin cannot read it');
    is([before, await left()], [6, 6], 'status page: a page of another origin cannot reset a key');
    await browser.navigate(page, `http://rebind.example:${statusPort}/limits`);
    is(await run(page, `return resultOf(fetch('/limits', { headers: { accept: 'application/json' } }))`), 421,
        'status page: it cannot be read by DNS rebinding');
    is(await run(page, `return resultOf(fetch('/limits', { method: 'POST',
        body: new URLSearchParams(${JSON.stringify(RESET)}) }))`), 421,
        'status page: a key cannot be reset by DNS rebinding');
    is(await left(), 6, 'status page: refused resets leave the count');
    await browser.navigate(page, `${status}?format=html`);
    await browser.load(() => run(page, `makeForm('${status}', ${form}).submit()`));
    is(await left(), 10, 'status page: its own form resets a key');
}

// ----

const pages = await servePages();
const browser = new Browser('--host-resolver-rules=MAP *.example 127.0.0.1');
try {
    const page = await browser.open();
    const { thread_id: threadId } = await call('POST', '/threads', {});
    const { run_id: runId } = await call('POST', `/threads/${threadId}/runs`, BODY);
    const victim = { threadId, path: `/threads/${threadId}/runs/${runId}` };
    await playForeign(browser, page, `http://evil.example:${pages}/`, victim);
    await playRebound(browser, page, victim);
    await playAllowed(browser, page, `http://app.example:${pages}/`, victim,
    'a page of an allowed origin');
    await playAllowed(browser, page, `${server}/ok`, victim, 'a page of the server itself');
    await playStatus(browser, page, `http://evil.example:${pages}/`);
    await call('POST', `${victim.path}/cancel`);
} catch (error) {
    process.stderr.write(`${error.stack}\n`);
    process.exitCode = 1;
} finally {
    await browser.close();
}
process.stdout.write(`1..${count}\n`);
process.exit();
