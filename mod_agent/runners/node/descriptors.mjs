// SPDX-License-Identifier: Apache-2.0
// Whether nodes have used up the descriptors of the process: those that they leave open are lost for all later runs.
import { closeSync, openSync, readFileSync } from 'node:fs';

// Of an eighth the runs that are still there have enough.
const FULL = 7 / 8;

// Node itself has raised the limit as far as it goes.
const most = (() => {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? Infinity : Number(limit);
})();

// Whether the lowest free descriptor is beyond most of them, or there is none.
export function isNearlyFull() {
    try {
        const lowest = openSync('/dev/null');
        closeSync(lowest);
        return lowest >= most * FULL;
    } catch (error) {
        return error.code === 'EMFILE';
    }
}
