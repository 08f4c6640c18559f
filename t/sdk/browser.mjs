// SPDX-License-Identifier: Apache-2.0
// Opens a page in headless Chromium and prints what its promise
// window.finished becomes. Takes the bundled script of the page; serves it on a
// port of its own, so that the page's origin is not the server's. Speaks the
// DevTools protocol over descriptors 3 and 4 of the browser.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

const [script] = process.argv.slice(2);
const PAGE = '<!doctype html><meta charset="utf-8"><title>page</title><script src="/page.js"></script>';

// Answers with the page's two files; returns its origin.
function servePage() {
    const server = http.createServer((request, response) => {
        const isScript = request.url === '/page.js';
        response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
        response.end(isScript ? fs.readFileSync(script) : PAGE);
    });
    return new Promise((resolve) => {
        server.listen(0, '127.0.0.1',
            () => resolve(`http://127.0.0.1:${server.address().port}`));
    });
}

class Browser {
    constructor(folder) {
        // It is shown nothing but our own page: no sandbox, which root and
        // containers do not have.
        this.process = spawn('chromium', ['--headless=new', '--remote-debugging-pipe',
            '--no-sandbox', '--no-first-run', '--disable-gpu', '--disable-dev-shm-usage',
            '--no-proxy-server', `--user-data-dir=${folder}`], {
            stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
            env: { ...process.env, HOME: folder },
        });
        this.waiting = new Map();
        this.listeners = [];
        this.count = 0;
        let rest = '';
        this.process.stdio[4].setEncoding('utf8').on('data', (text) => {
            const messages = (rest + text).split('\0');
            rest = messages.pop();
            messages.forEach((message) => this.take(JSON.parse(message)));
        });
        this.exit = new Promise((resolve, reject) => {
            this.process.on('exit', resolve).on('error', reject);
        });
    }

    take(message) {
        if (message.id === undefined) {
            this.listeners.forEach((listener) => listener(message));
            return;
        }
        const { resolve, reject } = this.waiting.get(message.id);
        if (message.error) {
            reject(new Error(JSON.stringify(message.error)));
        } else {
            resolve(message.result);
        }
    }

    // Calls a method of the protocol; the browser's end is an error.
    call(method, params = {}, sessionId = undefined) {
        this.count += 1;
        const id = this.count;
        this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
        return Promise.race([
            new Promise((resolve, reject) => { this.waiting.set(id, { resolve, reject }); }),
            this.exit.then((code) => { throw new Error(`chromium ended with ${code}`); }),
        ]);
    }

    event(method) {
        return new Promise((resolve) => {
            this.listeners.push((message) => message.method === method && resolve(message.params));
        });
    }

    async close() {
        await this.call('Browser.close').catch(() => {});
        await this.exit;
    }
}

// Loads the page and waits for its promise.
async function read(browser, url) {
    const { targetId } = await browser.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await browser.call('Target.attachToTarget', { targetId, flatten: true });
    await browser.call('Page.enable', {}, sessionId);
    const loaded = browser.event('Page.loadEventFired');
    await browser.call('Page.navigate', { url }, sessionId);
    await loaded;
    const { result, exceptionDetails } = await browser.call('Runtime.evaluate', {
        expression: 'window.finished', awaitPromise: true, returnByValue: true }, sessionId);
    if (exceptionDetails) {
        throw new Error(JSON.stringify(exceptionDetails));
    }
    return result.value;
}

const origin = await servePage();
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'agent-test-chromium.'));
const browser = new Browser(folder);
try {
    const where = new URLSearchParams({
        server: process.env.AGENT_TEST_URL, proxy: process.env.AGENT_TEST_PROXY });
    process.stdout.write(`${await read(browser, `${origin}/?${where}`)}\n`);
} catch (error) {
    process.stderr.write(`${error.stack}\n`);
    process.exitCode = 1;
} finally {
    await browser.close();
    fs.rmSync(folder, { recursive: true, force: true });
}
process.exit();
