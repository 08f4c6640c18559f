// SPDX-License-Identifier: Apache-2.0
// The working directory and the mask of new files, which all runs of the process share: a run
// that changes them is undone at its end.
import { currentRun, log } from './log.mjs';

// The one that the application has chosen when its graphs are imported.
let own = process.cwd();
const change = process.chdir.bind(process);
// The run that changed it last; undefined: no run.
let leaver;
// The mask, likewise, and the run that changed it.
let ownMask = process.umask();
const changeMask = process.umask.bind(process);
let masker;

// Called before the application is imported.
export function watchDirectory() {
    process.chdir = (path) => {
        change(path);
        leaver = currentRun.getStore()?.runId;
    };
    process.umask = (...mask) => {
        const before = changeMask(...mask);
        masker = mask.length > 0 ? currentRun.getStore()?.runId : masker;
        return before;
    };
}

// Called when the application is imported: runs begin in this one.
export function settleDirectory() {
    own = process.cwd();
    ownMask = changeMask();
}

function restoreMask(runId, graphId) {
    if (masker === undefined || masker === runId) {
        if (changeMask(ownMask) !== ownMask) {
            log(`graph ${graphId} has changed the mask of new files; it is the application's again`);
        }
        masker = undefined;
    }
}

// At the end of a run. Another one that still executes may be elsewhere.
export function restoreDirectory(runId, graphId) {
    restoreMask(runId, graphId);
    if ((leaver !== undefined && leaver !== runId) || isOwn()) {
        return;
    }
    try {
        change(own);
        log(`graph ${graphId} has changed the working directory; it is the application's again`);
    } catch (error) {
        log(`graph ${graphId} has changed the working directory, and it cannot be restored: ${error.message}`);
    }
    leaver = undefined;
}

function isOwn() {
    try {
        return process.cwd() === own;
    } catch {
        // The other one was deleted.
        return false;
    }
}
