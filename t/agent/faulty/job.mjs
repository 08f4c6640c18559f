// SPDX-License-Identifier: Apache-2.0
// The state of the graphs of this folder in JavaScript; job.py has the same one. `do` of the input
// names what a node does. Each execution of a node appends its name to the file `log`.
import { appendFileSync, readFileSync } from 'node:fs';
import { Annotation } from '@langchain/langgraph';

export const JOB = { do: Annotation(), log: Annotation(), gate: Annotation() };

// Notes an execution; returns how many there were.
export function count({ log }, name) {
    appendFileSync(log, `${name}\n`);
    return readFileSync(log, 'utf8').split('\n').filter((line) => line === name).length;
}
