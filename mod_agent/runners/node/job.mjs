// SPDX-License-Identifier: Apache-2.0
// The common part of a run and a call: their graph, their configuration, their end.
import { Checkpoints } from './checkpoints.mjs';
import { restoreDirectory } from './directory.mjs';
import { describeError, RunnerError, stackOf } from './errors.mjs';
import { currentRun, log } from './log.mjs';
import { Output } from './output.mjs';
import { mayExecute, turn } from './pace.mjs';
import { Records } from './records.mjs';
import { executing } from './saver.mjs';

// After a cancel, for nodes that do not watch their signal.
const CANCEL_MS = 3000;
// Then, if it is sending states that the library did not stream, for the newest of them.
const NEWEST_MS = 2000;
// Of a context whose members are members of `configurable` too.
const CONTEXT_MEMBERS_MAX = 256;
// Members of `configurable` that the runner sets.
const OWN = new Set(['thread_id', 'checkpoint_id', 'checkpoint_ns', 'checkpoint_map', 'run_id']);
// Names of the library, which no client may set.
const RESERVED = /^__/;
// Those in which a graph finds the authenticated user: the server sets them, and none comes
// from a context.
const IDENTITY = /^langgraph_auth_/;

function pause(milliseconds) {
    return new Promise((resolve) => {
        setTimeout(resolve, milliseconds).unref();
    });
}

// A subclass has perform(), which may set `result`, members of the line `end`, and accessContext(),
// the purpose that a factory gets.
export class Job {
    #graph;
    #cancelled;
    abort = new AbortController();
    isCancelled = false;
    // Whether the job reads and sends a state that the library did not stream.
    isShowing = false;
    // Whether the time of a cancelled run is over: of the states that are left it sends the newest only.
    isLate = false;
    // The error with which it failed before anything had stopped it.
    #failure;
    #isReported = false;

    // message: `start` or `call`; graph: its Graph; wire, limits: of the process.
    constructor(message, graph, wire, limits) {
        this.message = message;
        this.runId = message.run_id;
        this.epoch = message.epoch;
        this.output = new Output(wire, { run_id: message.run_id, epoch: message.epoch }, limits);
        this.#graph = graph;
        this.#cancelled = new Promise((resolve) => {
            this.signal.addEventListener('abort', resolve, { once: true });
        });
    }

    get signal() {
        return this.abort.signal;
    }

    cancel() {
        this.isCancelled = true;
        this.output.cancel();
        this.abort.abort(new RunnerError('CancelledError', 'the run was cancelled'));
    }

    // Asked to stop at the next checkpoint; a call is short.
    stop() {}

    // Executes it, up to its `end`.
    execute() {
        return currentRun.run(this, async () => {
            executing.add(this);
            const result = await Promise.race([this.#finish(), this.#giveUp()]).finally(() => executing.delete(this));
            this.records?.close(result.status === 'success');
            restoreDirectory(this.runId, this.message.graph_id);
            await this.#end(result);
        });
    }

    // The value of a call may be longer than a line.
    async #end(result) {
        try {
            await this.output.end(result);
        } catch (error) {
            await this.output.end({ status: 'error', error: describeError(error) });
        }
    }

    // The end of a cancelled run whose code goes on regardless.
    async #giveUp() {
        await this.#cancelled;
        await pause(CANCEL_MS);
        this.isLate = true;
        if (this.isShowing) {
            await pause(NEWEST_MS);
        }
        if (this.#failure) {
            return this.#report(this.#failure);
        }
        return this.isCancelled ? { status: 'interrupted', error: null } : { status: 'drained', error: null };
    }

    async #finish() {
        try {
            await this.perform();
            return { status: this.isCancelled ? 'interrupted' : 'success', error: null, ...this.result };
        } catch (error) {
            return await this.#fail(error);
        }
    }

    async #fail(error) {
        if (!this.#failure && this.isCancelled) {
            return { status: 'interrupted', error: null };
        }
        if (!this.#failure && this.wasDrained(error)) {
            return { status: 'drained', error: null };
        }
        return this.#report(this.#failure ?? error);
    }

    // For a job that does more after its error: a later cancel is not the reason of its end.
    noteFailure(error) {
        if (!this.signal.aborted && !this.wasDrained(error)) {
            this.#failure ??= error;
        }
    }

    async #report(error) {
        const described = describeError(error);
        if (!this.#isReported) {
            this.#isReported = true;
            log(stackOf(error));
            await this.sendError(described);
        }
        return { status: 'error', error: described };
    }

    // Whether the error is the consequence of a stop.
    wasDrained() {
        return false;
    }

    // A call sends no events: its error is in its end.
    async sendError() {}

    // --- The graph -------------------------------------------------------------

    // The graph, with the records of its library's copy.
    async open() {
        const config = { configurable: this.configurable(), metadata: this.message.config?.metadata ?? {} };
        const { graph, library } = await this.#graph.use(this.accessContext(), config, this.message.context);
        this.graph = graph;
        this.library = library;
        this.checkpoints = new Checkpoints(this.output);
        // With durability `exit` the streamed checkpoints have other ids than those that are put.
        const onPut = this.message.durability === 'exit' ? () => {} : (...put) => {
            this.learn();
            this.checkpoints.capture(...put);
        };
        this.records = new Records(
            this.output, library.saver.serde, this.message, this.message.durability === 'sync', onPut);
        this.records.afterPut = (...put) => {
            const post = () => {
                // Before the first node nothing would be lost but the input, which the next attempt has again.
                if (this.records.hasResults && mayExecute(graph.triggerToNodes, ...put)) {
                    this.output.post();
                }
            };
            return turn()?.then(post) ?? post();
        };
        this.fork = await this.records.findStart() ?? this.#named();
    }

    // The checkpoint that the client named, even if it is the last one of the thread.
    #named() {
        const named = this.message.config?.configurable?.checkpoint_id;
        const id = this.message.checkpoint?.checkpoint_id;
        if (this.message.checkpoint_map) {
            return id;
        }
        return named && id && this.epoch === 1 && String(named).toLowerCase() === id ? id : undefined;
    }

    // The checkpoint from which the run started is known once the library has read it.
    learn() {
        const { loaded } = this.records;
        if (loaded && this.checkpoints.lastId('') === undefined) {
            this.checkpoints.remember(loaded.id, loaded.shown, true);
        }
    }

    configurable() {
        // The members of the context too, for code that reads the older `configurable`; but the
        // library copies them for each task, so not those of a large one.
        const { context } = this.message;
        const shared = Object.keys(context ?? {}).length <= CONTEXT_MEMBERS_MAX ? context : {};
        const members = [
            ...Object.entries(shared ?? {}).filter(([name]) => !IDENTITY.test(name)), ...Object.entries(this.given()),
        ].filter(([name]) => !OWN.has(name) && !RESERVED.test(name));
        return {
            ...Object.fromEntries(members), thread_id: this.message.thread_id ?? undefined, run_id: this.message.run_id,
            graph_id: this.message.graph_id,
            ...(this.message.assistant_id ? { assistant_id: this.message.assistant_id } : {}),
            ...(this.fork === undefined ? {} : { checkpoint_id: this.fork }),
            ...this.#subgraphs(),
        };
    }

    metadata() {
        const { config, thread_id, graph_id, assistant_id } = this.message;
        return { ...config?.metadata, run_id: this.runId, thread_id, graph_id, assistant_id };
    }

    // The checkpoints of subgraphs from which the client wants the run to start, for which the
    // library asks when it comes to them.
    #subgraphs() {
        const { checkpoint, checkpoint_map: map } = this.message;
        return checkpoint && map ? { checkpoint_ns: '', checkpoint_map: { ...map, '': checkpoint.checkpoint_id } } : {};
    }

    // The client's `configurable` without an empty `user_id`: the server sends "" for no user,
    // and applications expect the member to be absent.
    given() {
        const { user_id: user, ...rest } = this.message.config?.configurable ?? {};
        return user === undefined || user === '' ? rest : { user_id: user, ...rest };
    }

    toCommand({ resume, update, goto: target }) {
        const { Command } = this.library;
        const targets = target === undefined || target === null ? undefined : [target].flat();
        const fields = {
            resume: resume ?? undefined, update: update ?? undefined,
            goto: targets?.map((item) => this.#toTarget(item)),
        };
        return new Command(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
    }

    // `arg` and `args` are the names in Python and in JavaScript, where graphs send it (RemoteGraph).
    #toTarget(target) {
        if (typeof target === 'string') {
            return target;
        }
        const { node, input, arg, args, timeout } = target;
        return new this.library.Send(node, input ?? arg ?? args, ...(timeout ? [{ timeout }] : []));
    }

    // The state of a checkpoint of the thread, as the graph reads it.
    readState(id, ns = '') {
        return this.graph.getState({ configurable: {
            thread_id: this.message.thread_id, checkpoint_ns: ns, ...(id ? { checkpoint_id: id } : {}) } });
    }
}
