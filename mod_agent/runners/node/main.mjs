// SPDX-License-Identifier: Apache-2.0
// The process: node main.mjs [--slots N] [--check], in the folder of an application.
// It imports no file of the runner before it has checked the version of Node: an older one would
// fail to load a file without naming the reason. This file runs on Node 14.
import { readFileSync } from 'node:fs';

const LEAST_NODE = 20;
const OLD_NODE = 78;

// The major version of langgraph.json's `node_version`; 0: none. A file that cannot be read is reported later.
function versionOfApplication() {
    try {
        return Number.parseInt(JSON.parse(readFileSync('langgraph.json', 'utf8')).node_version, 10) || 0;
    } catch {
        return 0;
    }
}

const wanted = versionOfApplication();
if (Number.parseInt(process.versions.node, 10) < Math.max(LEAST_NODE, wanted)) {
    const reason = wanted > LEAST_NODE ? ' by node_version of langgraph.json' : '';
    process.stderr.write(`agent runner: Node ${process.versions.node} (${process.execPath}) is too old: `
        + `${Math.max(LEAST_NODE, wanted)} or newer is needed${reason} (AgentNodeProgram; agentctl build takes that of --node, `
        + 'else installs that of PyPI if it is new enough)\n');
    process.exit(OLD_NODE);
}
await import('./command_line.mjs');
