// SPDX-License-Identifier: Apache-2.0
// A command in a repeated attempt of its run: what the lost attempt has stored is not given once more.
// The library keeps `update`, `goto` and one value of `resume` as writes of a task of its own, and reads
// them back. It would give a stored value to the next question too, which nobody has seen, even one that an
// earlier run has left there.
import { UPDATE_ID } from './checkpoints.mjs';
import { isObject } from './jsontext.mjs';

const INTERRUPT = '__interrupt__';
const RESUME = '__resume__';
const ID = /^[0-9a-f]{32}$/;
// The id of no question.
const NO_QUESTION = '0'.repeat(32);

const hasValue = (value) => (value ?? null) !== null;

function idsOf(questions) {
    return [questions ?? []].flat().map((question) => question?.id).filter(hasValue);
}

export class Repeat {
    #runId;
    #isAnswered;
    // The values for ids, as the library has them; it looks into them whenever it makes tasks.
    #answers = {};
    // The id of each task of the root graph -> the ids of its questions that the run has not asked itself.
    #asked = new Map();

    // message: `start` or `call`.
    constructor(message) {
        this.#runId = message.run_id;
        this.#isAnswered = message.answered === true;
    }

    // write: one of checkpoint.get.
    isOwn([, , , , , runId]) {
        return runId === this.#runId;
    }

    // Whether the writes of the command are among those of the checkpoint.
    isStored(writes) {
        return writes.some((write) => write[0] === UPDATE_ID && this.isOwn(write));
    }

    // The tasks, that of the command too, whose writes to the checkpoint the run has stored.
    writersOf(writes) {
        return new Set(writes.filter((write) => this.isOwn(write)).map(([taskId]) => taskId));
    }

    // The questions that the run has not asked itself.
    askedBefore(writes) {
        return writes.filter((write) => write[2] === INTERRUPT && !this.isOwn(write));
    }

    // The members of the command that are to be given; isLast: whether the checkpoint is the thread's last one; values: those
    // of the writes of askedBefore(), `asked`. undefined: nothing. The run goes on from the checkpoint. From an earlier one the
    // library would make a fork then, without the answers that are stored; with a `resume`, even for no question, it does not.
    rest(command, isStored, isLast, asked, values) {
        const { resume, ...others } = command;
        if (!hasValue(resume)) {
            // The library replaces the writes of such a command by the same ones, and leaves the step as the command does.
            return command;
        }
        this.#asked = new Map(asked.map(([taskId], i) => [taskId, idsOf(values[i])]));
        const waiting = new Set([...this.#asked.values()].flat());
        const rest = isStored ? {} : { ...others };
        const ids = isObject(resume) ? Object.keys(resume) : [];
        if (ids.length > 0 && ids.every((id) => ID.test(id))) {
            const left = ids.filter((id) => waiting.has(id));
            this.#answers = Object.fromEntries(left.map((id) => [id, resume[id]]));
            rest.resume = left.length > 0 ? this.#answers : undefined;
        } else if (!isStored && !this.#isAnswered) {
            // With durability `exit` a subgraph's answer is stored before the command is.
            rest.resume = resume;
        }
        // Without an answer the library would leave the step.
        return !isLast || Object.values(rest).some(hasValue) ? { ...rest, resume: rest.resume ?? { [NO_QUESTION]: null } } : undefined;
    }

    // The writes to a checkpoint that the library is to read.
    cut(writes) {
        return this.#isAnswered ? writes.filter(([taskId, , channel]) => taskId !== UPDATE_ID || channel !== RESUME) : writes;
    }

    // Called with the writes to a checkpoint and their values, before the library makes its tasks. A task of a subgraph that
    // has used its value and asked once more is not to get the value again.
    note(ns, writes, values) {
        if (ns === '' || Object.keys(this.#answers).length === 0) {
            return;
        }
        const tasks = (channel) => writes.filter((write) => write[2] === channel && this.isOwn(write)).map(([id]) => id);
        const asked = new Set(tasks(INTERRUPT));
        if (tasks(RESUME).some((id) => asked.has(id))) {
            const callers = [...ns.matchAll(/:([^:|]+)/g)].map(([, id]) => id).filter((id) => this.#asked.has(id));
            const used = callers.length > 0 ? callers.flatMap((id) => this.#asked.get(id)) : Object.keys(this.#answers);
            const left = new Set(values.flatMap((value, i) => (
                writes[i][2] === INTERRUPT && !this.isOwn(writes[i]) ? idsOf(value) : [])));
            // Which one of the task's graphs it was is not known: those that do not wait in this one are asked again.
            used.filter((id) => !left.has(id)).forEach((id) => delete this.#answers[id]);
        }
    }
}
