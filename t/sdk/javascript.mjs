// SPDX-License-Identifier: Apache-2.0
// Tests the server with the published JavaScript SDK; prints TAP. Takes the folder
// where it is installed and the topic, by default all. AGENT_TEST_ONLY: the
// beginning of the names of the scenarios to play.
import { webcrypto } from 'node:crypto';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { playAll, use } from './tap.mjs';

// An error outside of the scenarios ends the process: the diagnostics have its reason.
process.on('uncaughtException', (error) => {
    const reason = `# ${error.stack} ${error.cause?.stack ?? ''}`.replaceAll('\n', '\n# ');
    process.stdout.write(`${reason}\n`, () => process.exit(1));
});

// Node.js has it by default from version 20 on.
globalThis.crypto ??= webcrypto;

const { Client } = await import(pathToFileURL(
    path.join(process.argv[2], '@langchain/langgraph-sdk/dist/index.js')));

use({
    name: 'node',
    Client,
    serverUrl: process.env.AGENT_TEST_URL,
    proxyUrl: process.env.AGENT_TEST_PROXY,
});
await import(`./${process.argv[3] || 'topics'}.mjs`);
await playAll((line) => process.stdout.write(`${line}\n`),
    { names: [process.env.AGENT_TEST_ONLY || ''] });
// Idle connections must not keep the process alive.
process.exit(0);
