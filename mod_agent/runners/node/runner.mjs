// SPDX-License-Identifier: Apache-2.0
// Dispatches the messages of the supervisor to the runs of this process.
import { Call } from './call.mjs';
import { isNearlyFull } from './descriptors.mjs';
import { settleDirectory } from './directory.mjs';
import { describeError } from './errors.mjs';
import { exitProcess } from './exit.mjs';
import { Graph } from './graphs.mjs';
import { loadGraphs } from './load.mjs';
import { log } from './log.mjs';
import { Run } from './run.mjs';
import { Wire } from './wire.mjs';

const PROTOCOL = 2;
const LIMITS = { line: 8388608, blob_part: 4194304 };

export class Runner {
    #wire;
    #directory;
    #slots;
    #limits = LIMITS;
    #graphs;
    #runs = new Map();
    #isDraining = false;

    constructor(directory, slots) {
        this.#directory = directory;
        this.#slots = slots;
        this.#wire = new Wire({ take: (line) => this.#take(line), end: exitProcess });
    }

    // A line that is not a message of the protocol ends the process.
    #take(line) {
        let message;
        try {
            message = JSON.parse(line);
        } catch {
            this.#breach(`a line is not JSON: ${line.slice(0, 100)}`);
        }
        const handler = this.#handlers[message?.type];
        if (!handler) {
            this.#breach(`a message has the unknown type ${message?.type}`);
        }
        handler(message);
    }

    #breach(text) {
        log(`protocol: ${text}`);
        exitProcess(2);
    }

    // Without `ready` the process would be of no use to anyone.
    #giveUp(error) {
        log(`the application cannot be used: ${describeError(error).message.split('\n', 1)[0]}`);
        exitProcess(2);
    }

    #handlers = {
        hello: (message) => this.#hello(message).catch((error) => this.#giveUp(error)),
        start: (message) => this.#begin(message, Run),
        call: (message) => this.#begin(message, Call),
        cancel: (message) => this.#find(message)?.cancel(),
        stop: (message) => this.#find(message)?.stop(message.reason),
        go: (message) => this.#find(message)?.output.takeGo(),
        reply: (message) => this.#find(message)?.output.takeReply(message),
        drain: () => this.#drain(),
    };

    async #hello(message) {
        if (message.protocol !== PROTOCOL) {
            this.#breach(`the server speaks version ${message.protocol}`);
        }
        this.#limits = { ...LIMITS, ...message.limits };
        const { graphs, reports, runtime } = await loadGraphs(
            this.#directory, message.graphs, message.failed ?? undefined, (names) => this.#wire.importing(names));
        settleDirectory();
        this.#graphs = graphs;
        const ready = { type: 'ready', graphs: reports, slots: this.#slots, runtime };
        this.#wire.write(JSON.stringify(ready));
        this.#exitIfDrained();
    }

    #find(message) {
        const run = this.#runs.get(message.run_id);
        return run?.epoch === message.epoch ? run : undefined;
    }

    #begin(message, Kind) {
        if (this.#isDraining || this.#runs.has(message.run_id) || this.#runs.size >= this.#slots) {
            this.#breach(`the run ${message.run_id} cannot start`);
        }
        const graph = this.#graphs.get(message.graph_id) ?? Graph.absent(message.graph_id);
        const run = new Kind(message, graph, this.#wire, this.#limits);
        this.#runs.set(message.run_id, run);
        run.execute().catch((error) => log(`run ${message.run_id}: ${error.stack}`)).finally(() => {
            this.#runs.delete(message.run_id);
            this.#lookAtDescriptors(message);
            this.#exitIfDrained();
        });
    }

    #lookAtDescriptors({ run_id: id, graph_id: graph }) {
        if (!this.#wire.isSpent && isNearlyFull()) {
            this.#wire.spend();
            log(`almost all descriptors are in use at the end of run ${id} of graph ${graph}: this process should get no more runs`);
        }
    }

    #drain() {
        this.#isDraining = true;
        this.#exitIfDrained();
    }

    async #exitIfDrained() {
        if (this.#isDraining && this.#runs.size === 0) {
            await this.#wire.flush();
            exitProcess(0);
        }
    }
}
