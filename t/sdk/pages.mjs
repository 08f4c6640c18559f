// SPDX-License-Identifier: Apache-2.0
// Requests of pages of three kinds to a server, in headless Chromium: one of
// another origin, one whose own name leads to the server (DNS rebinding: two
// names, one address), and one of an origin that AgentAllowOrigin names. Takes
// the address of the limiter's status page. Prints TAP.
import http from 'node:http';
import { Browser, evaluate } from './chromium.mjs';

const server = process.env.AGENT_TEST_URL;
const [status] = process.argv.slice(2);
const { port } = new URL(server);
const { port: statusPort } = new URL(status);

// Shared by the scripts below; runs in the page.
const PRELUDE = `
    const told = (answer) => answer.then(
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
    // Sends a form and waits for what comes into a frame.
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
        await told(fetch(url, { mode: 'no-cors', signal: left.signal }));
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

// ---- the server, as a client other than a page sees it ----

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
    is(await run(page, `return send(makeText('${target}', ${body}))`), 'sent', 'a page of another origin sends a form');
    is(await run(page, `return told(fetch('${target}', { method: 'POST', mode: 'no-cors', body: '${body}' }))`),
        'opaque', '... and a request without CORS');
    is(await run(page, `return navigator.sendBeacon('${target}', '${body}')`), true, '... and a beacon');
    is(await run(page, `return told(fetch('${target}', { method: 'POST', body: '${body}',
        headers: { 'content-type': 'application/json' } }))`), 'failed', '... but no JSON');
    is(await run(page, `return told(fetch('${server}${path}', { method: 'DELETE' }))`), 'failed',
        '... and no DELETE');
    is(await run(page, `return told(fetch('${server}/info'))`), 'failed', 'it cannot read an answer');
    is(await run(page, `return follow('${server}${path}/stream')`), 'failed', '... nor a stream');
    await run(page, `return leave('${server}${path}/stream?cancel_on_disconnect=true')`);
    is((await call('GET', path)).status, 'pending', 'it cannot cancel a run by leaving');
    await browser.load(() => run(page, `makeText('${target}', ${body}).submit()`));
    is(/cross_site_request/.test(await evaluate(page, 'document.documentElement.innerText')), true,
        'who is sent to the server by its form sees the refusal');
    is(await countRuns(threadId), 1, 'none of it has made a run');
}

async function playRebound(browser, page, { threadId, path }) {
    await browser.navigate(page, `http://rebind.example:${port}/ok`);
    is(await evaluate(page, 'location.origin'), `http://rebind.example:${port}`,
        'a page that has made its own name lead to the server');
    is(await run(page, `return (await (await fetch('/threads/${threadId}/state')).json()).code`),
        'misdirected_request', '... cannot read a thread');
    is(await run(page, `return told(fetch('/threads/${threadId}/runs', { method: 'POST',
        body: '${JSON.stringify(BODY)}', headers: { 'content-type': 'application/json' } }))`), 421,
        '... cannot start a run');
    is(await run(page, `return told(fetch('/runs/cancel', { method: 'POST', body: '{"status":"all"}',
        headers: { 'content-type': 'application/json' } }))`), 421, '... cannot cancel one');
    is(await run(page, `return follow('${path}/stream')`), 'failed', '... cannot follow one');
    is([await countRuns(threadId), (await call('GET', path)).status], [1, 'pending'],
        'the runs are as they were');
}

async function playAllowed(browser, page, origin, { threadId, path }, title) {
    await browser.navigate(page, origin);
    is(await run(page, `return told(fetch('${server}/threads/${threadId}/runs?limit=1'))`), 200,
        `${title} reads`);
    is(await run(page, `return told(fetch('${server}/threads', { method: 'POST', body: '{}',
        headers: { 'content-type': 'application/json', 'x-api-key': 'k' } }))`), 200, '... writes');
    is(await run(page, `return follow('${server}${path}/stream')`), 'read', '... and follows a run');
}

const RESET = { action: 'reset', ip: '127.0.0.1' };

async function playStatus(browser, page, origin) {
    const before = await left();
    const form = `'application/x-www-form-urlencoded', ${JSON.stringify(RESET)}`;
    const query = new URLSearchParams(RESET);
    await browser.navigate(page, origin);
    await run(page, `return send(makeForm('${status}', ${form}))`);
    await run(page, `return told(fetch('${status}', { method: 'POST', mode: 'no-cors',
        body: new URLSearchParams(${JSON.stringify(RESET)}) }))`);
    is(await run(page, `return told(fetch('${status}?${query}', { method: 'POST' }))`), 'failed',
        'a page of another origin reads nothing of the status page');
    is([before, await left()], [6, 6], '... and resets nothing');
    await browser.navigate(page, `http://rebind.example:${statusPort}/limits`);
    is(await run(page, `return told(fetch('/limits', { headers: { accept: 'application/json' } }))`), 421,
        'nor does one whose name leads there read it');
    is(await run(page, `return told(fetch('/limits', { method: 'POST',
        body: new URLSearchParams(${JSON.stringify(RESET)}) }))`), 421, '... or reset');
    is(await left(), 6, 'the key was not reset');
    await browser.navigate(page, `${status}?format=html`);
    await browser.load(() => run(page, `makeForm('${status}', ${form}).submit()`));
    is(await left(), 10, 'the page itself resets it');
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
    await playAllowed(browser, page, `http://app.example:${pages}/`, victim, 'a page of an allowed origin');
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
