// SPDX-License-Identifier: Apache-2.0
// The states of a run as lines `checkpoint` and `task`: those that the library streams, those
// that it puts and does not stream, and with durability `exit` those of subgraphs at their end.
import { isDeepStrictEqual } from 'node:util';
import { Held } from './held.mjs';

export class States {
    #run;
    #checkpoints;
    // ns -> {ns, id} of the checkpoint whose tasks execute.
    #current = new Map();
    // With durability `exit`; else empty.
    #held = new Held();
    // The number of tasks of the root graph's step.
    #taskCount = 0;
    // The line that shows the update of the command, and the one that was sent.
    #update;
    #shown;

    // run: records, checkpoints, message; readState(id): a state of the graph; noteFailure(error): the
    // reason of its end; isShowing, isLate.
    constructor(run) {
        this.#run = run;
        this.#checkpoints = run.checkpoints;
        run.records.afterCommand = () => this.#showUpdate();
    }

    // A checkpoint of the library's stream.
    async take(namespace, payload) {
        const { known } = this.#run.records;
        const { checkpoint_id: id, checkpoint_ns: ns = '' } = payload.config?.configurable ?? {};
        const wasRead = known.wasRead(id, payload.metadata?.step);
        if (ns === '') {
            this.#taskCount = payload.tasks.length;
        }
        if (this.#run.message.durability === 'exit') {
            this.#current.delete(namespace.join('|'));
            if (ns !== '' && !wasRead) {
                this.#held.show(namespace, ns, payload);
            }
        } else if (id === this.#checkpoints.lastId(ns)) {
            if (ns === '' && this.#isUntouched(id)) {
                this.#checkpoints.remember(id, payload.values);
            }
            if (ns === '') {
                await this.#noteUpdate(id, payload);
            }
            this.#current.set(namespace.join('|'), { ns, id });
        } else if (known.isUnshown(id) || await known.waitForPut(ns, id)) {
            if (ns === '') {
                await this.#noteUpdate(id, payload);
            }
            const wait = this.#show(ns, id, payload);
            if (wait) {
                await wait;
            }
            this.#current.set(namespace.join('|'), { ns, id });
        }
        if (wasRead) {
            this.#current.set(namespace.join('|'), { ns, id });
        }
    }

    // The end of a task. Like the output, returns a promise when the caller should wait.
    endTask(namespace, task) {
        this.#held.end(namespace, task);
        this.#current.delete([...namespace, `${task.name}:${task.id}`].join('|'));
        return this.#checkpoints.sendTask(this.#current.get(namespace.join('|')), task);
    }

    // Sends a checkpoint of the run, after those before it that the library has not streamed.
    #show(ns, id, { parentConfig, values, next, tasks, metadata }) {
        const { known } = this.#run.records;
        if (ns === '' && !known.isUnshown(id)) {
            return undefined;
        }
        const send = () => this.#checkpoints.send({
            ns, id, parent: parentConfig?.configurable?.checkpoint_id ?? null, values, next, tasks, metadata });
        if (ns === '' && known.unshown(id).length > 0) {
            return this.#sendUnshown(id).then(send);
        }
        known.noteShown(id);
        return send();
    }

    // Whether a checkpoint is the one from which the run started, as it was saved: without
    // the updates of a command.
    #isUntouched(id) {
        const { loaded } = this.#run.records;
        const { command } = this.#run.message;
        return loaded?.id === id && loaded.isComplete && !command?.update && !command?.goto;
    }

    // Sends the root checkpoint that was put last, if the library did not stream it,
    // as after a breakpoint. With durability `exit` the last one is put at the end.
    async ensureHead() {
        if (this.#run.message.durability !== 'exit') {
            await this.sendHead();
        }
    }

    async sendHead() {
        const head = this.#run.records.known.lastPut('');
        if (head && head.id !== this.#checkpoints.lastId('')) {
            await this.#sendUnshown(head.id);
            await this.#sendPut(head);
        }
    }

    // Sends the root checkpoints, only those before `until`, that the library does not stream: those
    // that a node has put, as by `graph.updateState()`. When a cancelled run has no more time only
    // the last one, from which the next run goes on. The caller sends `until` itself.
    // Each is tried once: one that was left out may not follow a later one, which is the thread's state.
    async #sendUnshown(until) {
        const { known } = this.#run.records;
        const puts = known.unshown(until);
        const errors = [];
        for (const put of puts) {
            known.noteShown(put.id);
            if (!this.#run.isLate || (until === undefined && put === puts.at(-1))) {
                await this.#sendPut(put).catch((error) => {
                    this.#run.noteFailure(error);
                    errors.push(error);
                });
            }
        }
        if (until !== undefined) {
            known.noteShown(until);
        }
        if (errors.length > 0) {
            throw errors[0];
        }
    }

    // Sends a root checkpoint as the graph reads it.
    async #sendPut({ id, parent }) {
        this.#run.records.reuse();
        this.#run.isShowing = true;
        try {
            const { values, next, tasks, metadata } = await this.#run.readState(id);
            await this.#checkpoints.send({ ns: '', id, parent, values, next, tasks, metadata });
            this.#taskCount = tasks.length;
        } finally {
            this.#run.isShowing = false;
        }
        this.#current.set('', { ns: '', id });
    }

    // Sends the checkpoints of subgraphs that were put at their end.
    async #sendHeld() {
        for (const { ns, payload, ends } of this.#held.take()) {
            const put = this.#run.records.known.lastPut(ns);
            if (put?.step === payload.metadata.step) {
                await this.#checkpoints.send({
                    ns, id: put.id, parent: put.parent, values: payload.values, next: payload.next,
                    tasks: payload.tasks, metadata: payload.metadata });
                for (const task of ends) {
                    await this.#checkpoints.sendTask({ ns, id: put.id }, task);
                }
            }
        }
    }

    // The checkpoint from which the run starts, as its command has changed it: the library streams it, or the one that
    // it makes of it. An error is that of sendUpdate().
    #noteUpdate(id, payload) {
        const { records, message } = this.#run;
        const start = message.checkpoint?.checkpoint_id;
        const parent = payload.metadata?.source === 'input' ? payload.parentConfig?.configurable?.checkpoint_id : undefined;
        const hasUpdate = message.command?.update || message.command?.goto;
        if (!hasUpdate || records.hasReplaced || start === undefined || (id !== start && parent !== start)) {
            return undefined;
        }
        try {
            // The nodes of `goto` follow that one only.
            const next = id === start ? payload.next : message.checkpoint.next;
            this.#update ??= this.#checkpoints.updateLine(start, records.updated, { ...payload, next });
            return this.#showUpdate();
        } catch {
            return undefined;
        }
    }

    // While the run executes, since its process may be lost before the end.
    #showUpdate() {
        if (!this.#update || this.#shown || this.#run.records.commanded !== this.#update.checkpoint_id) {
            return undefined;
        }
        this.#shown = this.#update;
        try {
            return this.#checkpoints.sendUpdate(this.#shown);
        } catch {
            return undefined;
        }
    }

    // At the end: the checkpoint that commands have changed, if that of the run has. The server shows the last
    // line only: it has what earlier runs have changed too.
    async sendUpdate() {
        const { records } = this.#run;
        if (records.commanded !== undefined) {
            records.reuse();
            const line = this.#checkpoints.updateLine(records.commanded, records.updated, await this.#run.readState(records.commanded));
            if (!isDeepStrictEqual(line, this.#shown)) {
                await this.#checkpoints.sendUpdate(line);
            }
        }
    }

    // At the end: where the run stops in a step with parallel nodes, some of them have ended or asked. Their
    // writes are stored already; when another node fails at that moment, the library has not streamed their ends.
    async sendPending() {
        const { records } = this.#run;
        const id = this.#checkpoints.lastId('');
        if (this.#taskCount > 1 && id !== undefined && records.written === id) {
            records.reuse();
            const state = await this.#run.readState(undefined);
            if (state.config.configurable.checkpoint_id === id) {
                await this.#checkpoints.sendEnds(state, records.lost);
                if (state.next.length < this.#taskCount) {
                    await this.#checkpoints.sendPending(state);
                }
            }
        }
    }

    // After the root's last checkpoint: what is left.
    async finish() {
        await this.#sendHeld();
        await this.#sendUnshown();
    }
}
