// SPDX-License-Identifier: Apache-2.0
// The process: node main.mjs [--slots N] [--check], in the folder of an application.
// It imports nothing before it has checked the version of Node: an older one would fail to
// load a file without naming the reason. This file runs on Node 14.
const LEAST_NODE = 20;
const OLD_NODE = 78;

if (Number.parseInt(process.versions.node, 10) < LEAST_NODE) {
    process.stderr.write(`agent runner: Node ${process.versions.node} (${process.execPath}) is too old: `
        + `${LEAST_NODE} or newer is needed (AgentNodeProgram; agentctl build installs one)\n`);
    process.exit(OLD_NODE);
}
await import('./command_line.mjs');
