// SPDX-License-Identifier: Apache-2.0
// The end of the process. Code of the application that calls process.exit() would end the
// runs of all others: in a run, and while graphs are imported, it gets an error instead.
import { writeSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { RunnerError } from './errors.mjs';
import { currentRun } from './log.mjs';

const exit = process.exit.bind(process);

let isExiting = false;
let isImporting = false;

// Ends the process.
export function exitProcess(status) {
    isExiting = true;
    exit(status);
}

// The result of an action that imports graphs.
export async function whileImporting(action) {
    isImporting = true;
    try {
        return await action();
    } finally {
        isImporting = false;
    }
}

// From now on process.exit() throws in runs and imports; any other exit that the
// application causes is logged.
export function guardExit() {
    process.exit = (status) => {
        if (isImporting || currentRun.getStore()) {
            throw new RunnerError('ProcessExitError',
                `code of the application called process.exit(${status === undefined ? '' : String(status)})`);
        }
        exit(status);
    };
    syncBuiltinESMExports();
    process.on('exit', (status) => {
        if (!isExiting) {
            const run = currentRun.getStore();
            const prefix = run ? `run ${run.runId}: ` : '';
            writeSync(2, `${prefix}the application ended the process with status ${status}\n`);
        }
    });
}
