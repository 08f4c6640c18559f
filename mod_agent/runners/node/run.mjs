// SPDX-License-Identifier: Apache-2.0
// One run of a graph, from `start` to `end`: its input and the library's stream.
import { Commands } from './commands.mjs';
import { isDrained, RunnerError, stackOf } from './errors.mjs';
import { contextOf, RUN } from './graphs.mjs';
import { Job } from './job.mjs';
import { log } from './log.mjs';
import { makeHandlers } from './pace.mjs';
import { libraryModes, Stream } from './stream.mjs';
import { strictness } from './strict.mjs';

// Turns of the loop in which the library ends after an abort; it waits for nothing else.
const SETTLE_TURNS = 10;

// A control of the library's that knows whether a graph has drained: it is asked for the reason then.
function makeControl(RunControl) {
    return new class extends RunControl {
        hasDrained = false;

        get drainReason() {
            this.hasDrained = true;
            return super.drainReason;
        }
    }();
}

export class Run extends Job {
    #control;
    // Whether nodes follow the root checkpoint that the library has shown last.
    #hasNext = false;
    #isStopped = false;
    #command;
    commands = new Commands();

    accessContext() {
        return RUN;
    }

    stop(reason) {
        this.#isStopped = true;
        this.#control?.requestDrain(reason);
    }

    wasDrained(error) {
        return this.#isStopped && (isDrained(error) || this.signal.aborted);
    }

    async sendError(described) {
        await this.output.send('event', { event: 'error', data: described });
    }

    async perform() {
        await this.open();
        await this.#findRest();
        await this.records.breakpoints.begin(this.graph, this.library, this.message);
        const stream = new Stream(this);
        try {
            for await (const chunk of await this.#chunks()) {
                if (this.isCancelled) {
                    break;
                }
                this.learn();
                const wait = stream.take(chunk);
                if (wait) {
                    await wait;
                }
                this.#stopBetweenSteps(chunk);
            }
            this.#checkDrained();
            await stream.finish();
            await this.#sendWritten(stream);
        } catch (error) {
            this.noteFailure(error);
            await this.#settle();
            // The reason of the end remains that error. A cancelled run may have ended by then.
            await stream.fail().catch((caught) => this.output.isClosed || log(stackOf(caught)));
            // Another runner completes the step.
            if (!this.wasDrained(error)) {
                await this.#sendWritten(stream);
            }
            throw error;
        }
    }

    // An error changes nothing: the run has ended as it has all the same.
    async #sendWritten(stream) {
        await stream.sendWritten().catch((caught) => this.output.isClosed || log(stackOf(caught)));
    }

    // An abort ends the stream before the library has: with durability `exit` it then puts its last
    // checkpoint, which is older than what a node has put.
    async #settle() {
        if (this.signal.aborted && this.message.durability === 'exit') {
            for (let turn = 0; turn < SETTLE_TURNS; turn += 1) {
                await new Promise((resolve) => { setImmediate(resolve); });
            }
        }
    }

    // Of parallel nodes one may drain, and another one then stop at a question or breakpoint, of which alone the library tells.
    #checkDrained() {
        if (this.#control?.hasDrained && this.#hasNext && !this.isCancelled) {
            throw new RunnerError('GraphDrained', 'the server is being drained');
        }
    }

    // A library without RunControl is stopped after a checkpoint. A breakpoint is the end of the run, at which it stops itself.
    #stopBetweenSteps([namespace, mode, payload]) {
        if (namespace.length > 0 || mode !== 'checkpoints') {
            return;
        }
        this.#hasNext = payload?.next?.length > 0;
        if (this.#isStopped && !this.#control && this.#hasNext && !this.records.breakpoints.stopsAt(payload)) {
            this.abort.abort(new RunnerError('GraphDrained', 'the server is being drained'));
        }
    }

    // In a repeated attempt a part of the command may be stored.
    async #findRest() {
        const { command, epoch, strict_resume: isStrict } = this.message;
        // A run that is still to be strict has stored nothing: the library checks the whole command, as in the first attempt.
        this.#command = command && epoch > 1 && !isStrict ? await this.records.restOf(command) : command;
    }

    async #chunks() {
        const options = this.#options();
        if (!this.message.stream_modes.includes('events')) {
            return this.graph.stream(this.#input(), options);
        }
        return this.#eventChunks(options);
    }

    // The same chunks, taken from LangChain's events, which are sent as well.
    async* #eventChunks(options) {
        const stream = await this.graph.streamEvents(this.#input(), { ...options, version: 'v2' });
        for await (const event of stream) {
            // The tags of a run are its client's: its chunks come with any.
            if (event.event === 'on_chain_stream' && event.run_id === this.runId) {
                yield event.data.chunk;
            } else if (!event.tags?.includes('langsmith:hidden')) {
                yield [[], 'events', event];
            }
        }
    }

    #options() {
        const { config = {}, durability } = this.message;
        if (this.library.RunControl) {
            this.#control = makeControl(this.library.RunControl);
            if (this.#isStopped) {
                this.#control.requestDrain('drain');
            }
        }
        const options = {
            configurable: { ...this.configurable(), ...strictness(this.message, this.library) },
            store: this.library.store.of(this),
            metadata: this.metadata(),
            tags: config.tags ?? undefined,
            recursionLimit: config.recursion_limit ?? undefined,
            context: contextOf(this.graph, this.message.context ?? {}, this.given()),
            runId: this.runId,
            signal: this.signal,
            callbacks: this.library.waits ? undefined : makeHandlers(this.output, this.records),
            control: this.#control,
            streamMode: libraryModes(this.message.stream_modes),
            subgraphs: true,
            // The library waits for a put after each step, so that a run without credit
            // stops there; only with `sync` does a put wait for its commit.
            durability: durability === 'exit' ? 'exit' : 'sync',
            interruptBefore: this.records.breakpoints.before,
            interruptAfter: this.records.breakpoints.after,
        };
        // A member that is undefined would replace the graph's own default.
        return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    }

    // null: continue from the checkpoint. Also when a lost attempt of this run has saved the
    // checkpoint before the input, which has the input in a channel.
    #input() {
        const { input, checkpoint } = this.message;
        if (this.#command) {
            return this.toCommand(this.#command);
        }
        const isSaved = checkpoint && checkpoint.run_id === this.runId && checkpoint.next?.[0] === '__start__';
        return isSaved ? null : input ?? null;
    }
}
