// SPDX-License-Identifier: Apache-2.0
// Opens a page in headless Chromium and prints the value of its promise
// window.finished. Takes the bundled script of the page and serves it on another
// port, so that the origin of the page is not that of the server.
import fs from 'node:fs';
import http from 'node:http';
import { Browser, evaluate } from './chromium.mjs';

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

const origin = await servePage();
const browser = new Browser();
try {
    const where = new URLSearchParams({
        server: process.env.AGENT_TEST_URL, proxy: process.env.AGENT_TEST_PROXY });
    const page = await browser.open();
    await browser.navigate(page, `${origin}/?${where}`);
    process.stdout.write(`${await evaluate(page, 'window.finished')}\n`);
} catch (error) {
    process.stderr.write(`${error.stack}\n`);
    process.exitCode = 1;
} finally {
    await browser.close();
}
process.exit();
