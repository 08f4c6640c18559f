// SPDX-License-Identifier: Apache-2.0
// Headless Chromium, by the DevTools protocol over descriptors 3 and 4 of the
// browser.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export class Browser {
    // More arguments of the command line.
    constructor(...words) {
        this.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'agent-test-chromium.'));
        // No sandbox, which root and containers do not have: it opens only pages of
        // the tests.
        this.process = spawn('chromium', ['--headless=new', '--remote-debugging-pipe',
            '--no-sandbox', '--no-first-run', '--disable-gpu', '--disable-dev-shm-usage',
            '--no-proxy-server', `--user-data-dir=${this.folder}`, ...words], {
            stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
            env: { ...process.env, HOME: this.folder },
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

    // Calls a method of the protocol; fails if the browser ends.
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
        fs.rmSync(this.folder, { recursive: true, force: true });
    }

    // A new page, as a function that calls methods for it.
    async open() {
        const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
        const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
        const page = (method, params) => this.call(method, params, sessionId);
        await page('Page.enable');
        return page;
    }

    // Waits for the document that the page loads because of the action.
    async load(action) {
        const loaded = this.event('Page.loadEventFired');
        await action();
        await loaded;
    }

    async navigate(page, url) {
        await this.load(() => page('Page.navigate', { url }));
    }
}

// Returns the value of an expression in the page, awaited if it is a promise.
export async function evaluate(page, expression) {
    const { result, exceptionDetails } = await page('Runtime.evaluate', {
        expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) {
        throw new Error(JSON.stringify(exceptionDetails));
    }
    return result.value;
}
