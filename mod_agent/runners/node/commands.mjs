// SPDX-License-Identifier: Apache-2.0
// Commands to the parent of the root graph, which the library drops: it lets the run end with success.
import { currentRun } from './log.mjs';

const PARENT = '__parent__';
// The last tasks whose commands are known: those of tasks of subgraphs are of no use.
const COMMANDS_MAX = 64;

// Makes a build of the library tell the run of each command to a parent. It sets the member
// `pregelTaskId` of what a task throws, in the task's graph and in those around it, before it
// reports the end of the task; after that the command names the graph. Runs have no handler of callbacks for it, which costs time in each node.
export function watchCommands({ ParentCommand }) {
    if (ParentCommand === undefined) {
        return;
    }
    const tasks = new WeakMap();
    Object.defineProperty(ParentCommand.prototype, 'pregelTaskId', {
        configurable: true,
        get() {
            return tasks.get(this);
        },
        set(id) {
            tasks.set(this, id);
            if (this.command?.graph === PARENT) {
                currentRun.getStore()?.commands?.add(id, this.command);
            }
        },
    });
}

function targetOf(target) {
    if (typeof target === 'string') {
        return target;
    }
    const { node, args, timeout } = target;
    return { node, arg: args ?? null, ...(timeout === undefined ? {} : { timeout }) };
}

// The commands that tasks of one run have thrown.
export class Commands {
    #commands = new Map();

    add(taskId, command) {
        this.#commands.delete(taskId);
        this.#commands.set(taskId, command);
        if (this.#commands.size > COMMANDS_MAX) {
            this.#commands.delete(this.#commands.keys().next().value);
        }
    }

    // The data of the event `command` for a task of the root graph; undefined if it has thrown none.
    of(taskId) {
        const command = this.#commands.get(taskId);
        if (command === undefined) {
            return undefined;
        }
        const { update = null, resume = null, goto: target = [] } = command;
        return {
            graph: PARENT, update, resume,
            goto: Array.isArray(target) ? target.map(targetOf) : targetOf(target),
        };
    }
}
