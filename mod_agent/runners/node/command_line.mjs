// SPDX-License-Identifier: Apache-2.0
// The command line. Without --check the process speaks the protocol on descriptors 3
// and 4; with it, it imports all graphs and prints their reports as the last line, of JSON.
import { setMaxListeners } from 'node:events';
import { parseArgs } from 'node:util';
import { pathOf, readConfig, setEnv } from './application.mjs';
import { watchDirectory } from './directory.mjs';
import { RunnerError, stackOf } from './errors.mjs';
import { guardExit, exitProcess } from './exit.mjs';
import { loadGraphs } from './load.mjs';
import { installLog, log, logErrors } from './log.mjs';
import { Runner } from './runner.mjs';

const SLOTS = 100;
// Exit status with --check.
const SOME_GRAPHS_FAIL = 1;
const NO_CONFIG = 2;

const { values: options } = parseArgs({
    options: { slots: { type: 'string', default: String(SLOTS) }, check: { type: 'boolean', default: false } },
});
const directory = process.cwd();

// The configuration, with its environment set; undefined if it cannot be used.
function prepare() {
    try {
        const config = readConfig(directory);
        setEnv(directory, config.env);
        return config;
    } catch (error) {
        log(`${error.message}`);
        return undefined;
    }
}

async function check(config) {
    const print = process.stdout.write.bind(process.stdout);
    // Output of the application is not the report.
    process.stdout.write = process.stderr.write.bind(process.stderr);
    const definitions = Object.fromEntries(Object.entries(config.graphs).map(
        ([name, graph]) => [name, { path: pathOf(graph), description: graph?.description ?? null }]));
    // For agentctl, if this process does not end by itself.
    const { reports, runtime } = await loadGraphs(directory, definitions, undefined,
        (names) => print(`${JSON.stringify({ type: 'importing', graph_id: names.at(-1) ?? null })}\n`));
    const hasFailed = Object.values(reports).some((report) => report.error);
    print(`${JSON.stringify({ type: 'ready', graphs: reports, runtime })}\n`,
        () => exitProcess(hasFailed ? SOME_GRAPHS_FAIL : 0));
}

// Each parallel task adds a listener to signals that the library makes: a warning of their number would be wrong.
setMaxListeners(0);
guardExit();
logErrors();
const config = prepare();
if (!config) {
    exitProcess(NO_CONFIG);
}
if (options.check) {
    await check(config).catch((error) => {
        log(error instanceof RunnerError ? error.message : stackOf(error));
        exitProcess(NO_CONFIG);
    });
} else {
    installLog();
    watchDirectory();
    new Runner(directory, Number(options.slots));
}
