// SPDX-License-Identifier: Apache-2.0
// One run of a graph: its input and configuration, the library's stream, its end.
import { setMaxListeners } from 'node:events';
import { Checkpoints } from './checkpoint.mjs';
import { describeError, isDrained, RunnerError, stackOf } from './errors.mjs';
import { RUN } from './graphs.mjs';
import { log, runs } from './log.mjs';
import { Output } from './output.mjs';
import { makeHandlers } from './pace.mjs';
import { Records } from './records.mjs';
import { libraryModes, RunStream } from './stream.mjs';

// After a cancel, for nodes that do not watch their signal.
const CANCEL_MS = 3000;
// Members of `configurable` that the runner sets.
const OWN = new Set(['thread_id', 'checkpoint_id', 'checkpoint_ns', 'checkpoint_map', 'run_id']);
// Names of the library, and those in which a graph finds the authenticated user: no client
// may set them.
const RESERVED = /^(?:__|langgraph_auth_)/;

export class Run {
    #graph;
    #abort = new AbortController();
    #control;
    #isCancelled = false;
    #isStopped = false;
    #cancelled;

    // start: the message; graph: its Graph; wire, limits: of the process.
    constructor(start, graph, wire, limits) {
        this.start = start;
        this.runId = start.run_id;
        this.output = new Output(wire, { run_id: start.run_id, epoch: start.epoch }, limits);
        this.#graph = graph;
        // Each parallel task adds a listener: no warning about their number.
        setMaxListeners(0, this.#abort.signal);
        this.#cancelled = new Promise((resolve) => {
            this.#abort.signal.addEventListener('abort', resolve, { once: true });
        });
    }

    get signal() {
        return this.#abort.signal;
    }

    cancel() {
        this.#isCancelled = true;
        this.output.cancel();
        this.#abort.abort(new RunnerError('CancelledError', 'the run was cancelled'));
    }

    stop(reason) {
        this.#isStopped = true;
        this.#control?.requestDrain(reason);
    }

    // Executes the run, up to its `end`.
    execute() {
        return runs.run(this, async () => {
            const result = await Promise.race([this.#finish(), this.#giveUp()]);
            this.records?.close(result.status === 'success');
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
        await new Promise((resolve) => {
            setTimeout(resolve, CANCEL_MS).unref();
        });
        return this.#isCancelled ? { status: 'interrupted', error: null } : { status: 'drained', error: null };
    }

    async #finish() {
        try {
            await this.perform();
            return { status: this.#isCancelled ? 'interrupted' : 'success', error: null, ...this.result };
        } catch (error) {
            return await this.#fail(error);
        }
    }

    async #fail(error) {
        if (this.#isCancelled) {
            return { status: 'interrupted', error: null };
        }
        if (this.#isStopped && (isDrained(error) || this.signal.aborted)) {
            return { status: 'drained', error: null };
        }
        const described = describeError(error);
        log(stackOf(error));
        await this.sendError(described);
        return { status: 'error', error: described };
    }

    async sendError(described) {
        await this.output.send('event', { event: 'error', data: described });
    }

    // --- The library's stream --------------------------------------------------

    // The graph, with the records of its library's copy.
    async open() {
        const config = { configurable: this.configurable(), metadata: this.start.config?.metadata ?? {} };
        const { graph, library } = await this.#graph.instance(this.accessContext(), config, this.start.context);
        this.graph = graph;
        this.library = library;
        this.checkpoints = new Checkpoints(this.output);
        // With durability `exit` the streamed checkpoints have other ids than those that are put.
        const onPut = this.start.durability === 'exit' ? () => {} : (...put) => {
            this.#learn();
            this.checkpoints.capture(...put);
        };
        this.records = new Records(
            this.output, library.saver.serde, this.start, this.start.durability === 'sync', onPut);
        this.fork = await this.records.prepare() ?? this.#named();
    }

    // The checkpoint that the client named, even if it is the last one of the thread.
    #named() {
        const named = this.start.config?.configurable?.checkpoint_id;
        const id = this.start.checkpoint?.checkpoint_id;
        if (this.start.checkpoint_map) {
            return id;
        }
        return named && id && this.start.attempt === 1 && String(named).toLowerCase() === id ? id : undefined;
    }

    // The `accessContext` that a factory gets.
    accessContext() {
        return RUN;
    }

    configurable() {
        // The members of the context too, for code that reads the older `configurable`.
        const members = { ...this.start.context, ...this.#given() };
        const given = Object.entries(members).filter(([name]) => !OWN.has(name) && !RESERVED.test(name));
        return {
            ...Object.fromEntries(given), thread_id: this.start.thread_id ?? undefined, run_id: this.start.run_id,
            graph_id: this.start.graph_id,
            ...(this.start.assistant_id ? { assistant_id: this.start.assistant_id } : {}),
            ...(this.fork === undefined ? {} : { checkpoint_id: this.fork }),
            ...this.#subgraphs(),
        };
    }

    metadata() {
        const { config, thread_id, graph_id, assistant_id } = this.start;
        return { ...config?.metadata, run_id: this.runId, thread_id, graph_id, assistant_id };
    }

    // The checkpoints of subgraphs from which the client wants the run to start, for which the
    // library asks when it comes to them.
    #subgraphs() {
        const { checkpoint, checkpoint_map: map } = this.start;
        return checkpoint && map ? { checkpoint_ns: '', checkpoint_map: { ...map, '': checkpoint.checkpoint_id } } : {};
    }

    // The client's `configurable` without an empty `user_id`: the server sends "" for no user,
    // and applications expect the member to be absent.
    #given() {
        const { user_id: user, ...rest } = this.start.config?.configurable ?? {};
        return user === undefined || user === '' ? rest : { user_id: user, ...rest };
    }

    async perform() {
        await this.open();
        const stream = new RunStream(this);
        try {
            for await (const chunk of await this.#chunks()) {
                if (this.#isCancelled) {
                    break;
                }
                this.#learn();
                await stream.take(chunk);
                this.#stopBetweenSteps(chunk);
            }
        } catch (error) {
            if (!this.signal.aborted) {
                await stream.fail();
            }
            throw error;
        }
        await stream.finish();
    }

    // The checkpoint from which the run started is known once the library has read it.
    #learn() {
        const { loaded } = this.records;
        if (loaded && this.checkpoints.lastOf('') === undefined) {
            this.checkpoints.remember(loaded.id, loaded.values, true);
        }
    }

    // A library without RunControl is stopped after a checkpoint.
    #stopBetweenSteps([namespace, mode, payload]) {
        if (this.#isStopped && !this.#control && namespace.length === 0 && mode === 'checkpoints'
            && payload?.next?.length > 0) {
            this.#abort.abort(new RunnerError('GraphDrained', 'the server is being drained'));
        }
    }

    async #chunks() {
        const options = this.#options();
        if (!this.start.stream_modes.includes('events')) {
            return this.graph.stream(this.#input(), options);
        }
        return this.#eventChunks(options);
    }

    // The same chunks, taken from LangChain's events, which are sent as well.
    async* #eventChunks(options) {
        const stream = await this.graph.streamEvents(this.#input(), { ...options, version: 'v2' });
        for await (const event of stream) {
            if (event.tags?.includes('langsmith:hidden')) {
                continue;
            }
            if (event.event === 'on_chain_stream' && event.run_id === this.runId) {
                yield event.data.chunk;
            } else {
                yield [[], 'events', event];
            }
        }
    }

    // The client's context. Without it a graph with a context schema gets the members of
    // `configurable` with its names, where clients of older libraries send them.
    #context() {
        const given = this.start.context ?? {};
        const names = Object.keys(this.graph.builder?._configRuntimeSchema?.shape ?? {});
        if (names.length === 0 || Object.keys(given).length > 0) {
            return Object.keys(given).length > 0 ? given : undefined;
        }
        const configurable = this.#given();
        return Object.fromEntries(names.filter((name) => Object.hasOwn(configurable, name))
            .map((name) => [name, configurable[name]]));
    }

    // The library refuses a resume that answers no interrupt which waits, before it writes
    // anything; older versions would ignore the member, and the answer.
    #strictness() {
        const { strict_resume: isStrict, command } = this.start;
        if (!isStrict || (command?.resume ?? null) === null) {
            return {};
        }
        if (!this.library.UnknownInterruptError) {
            throw new RunnerError('StrictResumeError', `@langchain/langgraph ${this.library.version} of the application `
                + 'does not know strict_resume: install a newer version, or leave it out');
        }
        return { __pregel_strict_resume: true };
    }

    #options() {
        const { config = {}, durability } = this.start;
        if (this.library.RunControl) {
            this.#control = new this.library.RunControl();
            if (this.#isStopped) {
                this.#control.requestDrain('drain');
            }
        }
        const options = {
            configurable: { ...this.configurable(), ...this.#strictness() },
            metadata: this.metadata(),
            tags: config.tags ?? undefined,
            recursionLimit: config.recursion_limit ?? undefined,
            context: this.#context(),
            runId: this.runId,
            signal: this.signal,
            callbacks: this.library.waits ? undefined : makeHandlers(this.output, this.records),
            control: this.#control,
            streamMode: libraryModes(this.start.stream_modes),
            subgraphs: true,
            // The library waits for a put after each step, so that a run without credit
            // stops there; only with `sync` does a put wait for its commit.
            durability: durability === 'exit' ? 'exit' : 'sync',
            interruptBefore: this.start.interrupt_before ?? undefined,
            interruptAfter: this.start.interrupt_after ?? undefined,
        };
        // A member that is undefined would replace the graph's own default.
        return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    }

    // null: continue from the checkpoint. Also when a lost attempt of this run has saved the
    // checkpoint before the input, which has the input in a channel.
    #input() {
        const { command, input, checkpoint } = this.start;
        if (command) {
            return this.command(command);
        }
        const isSaved = checkpoint && checkpoint.run_id === this.runId && checkpoint.next?.[0] === '__start__';
        return isSaved ? null : input ?? null;
    }

    command({ resume, update, goto: target }) {
        const { Command, Send } = this.library;
        const targets = target === undefined || target === null ? undefined : [target].flat();
        const fields = {
            resume: resume ?? undefined, update: update ?? undefined,
            goto: targets?.map((item) => (typeof item === 'string' ? item : new Send(item.node, item.input ?? item.arg))),
        };
        return new Command(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
    }

    // The state of a checkpoint of the thread, as the graph reads it.
    snapshot(id, ns = '') {
        return this.graph.getState({ configurable: {
            thread_id: this.start.thread_id, checkpoint_ns: ns, ...(id ? { checkpoint_id: id } : {}) } });
    }
}
