// SPDX-License-Identifier: Apache-2.0
// Imports and describes the graphs of an application, for `ready`. A graph whose
// import or factory never ends is reported with an error and does not delay the others.
// Limits count the time in which the process is idle and half of its processor time, not
// the time in which other processes run: so a slow machine causes no timeouts.
import { RunnerError } from './errors.mjs';
import { whileImporting } from './exit.mjs';
import { Graph } from './graphs.mjs';
import { Library } from './library.mjs';
import { describeGraph, runtime } from './report.mjs';

const TICK_MS = 50;
// Processor time within a tick from which other threads of the process work: tsx compiles in one.
const WORK_MS = 5;
// Still time after which the next import starts while this one is pending. Imports that only read or compile for long
// must not overlap: require() of a module that another import is loading fails (Node 20: ERR_INTERNAL_ASSERTION).
const OVERTAKE_MS = 500;
// After which a graph is reported with an error; the supervisor waits 30 s for `ready`.
const LIMIT_MS = 10000;

function measure() {
    const { userCPUTime, systemCPUTime, fsRead } = process.resourceUsage();
    return { idle: performance.eventLoopUtilization().idle, cpu: (userCPUTime + systemCPUTime) / 1000, reads: fsRead };
}

// Measures the idle and the processor time of this process.
export class Clock {
    #measure;
    #last;
    // still: idle milliseconds in which no thread computed or waited for the disk; spent: all idle ones and half of
    // the processor time.
    #now = { still: 0, spent: 0 };
    // Pending limits: {of: 'still' or 'spent', at, resolve}.
    #limits = new Set();
    #timer;

    // measure(): since the process began, milliseconds {idle, cpu} and {reads} from the disk.
    constructor(source = measure) {
        this.#measure = source;
        this.#last = source();
        this.#timer = setInterval(() => this.tick(), TICK_MS);
    }

    tick() {
        const { idle, cpu, reads } = this.#measure();
        // A process that was not scheduled when its timer ended was not idle all that time.
        const waited = Math.min(idle - this.#last.idle, TICK_MS);
        const computed = cpu - this.#last.cpu;
        if (computed < WORK_MS && reads === this.#last.reads) {
            this.#now.still += waited;
        }
        this.#now.spent += waited + computed / 2;
        this.#last = { idle, cpu, reads };
        for (const limit of this.#limits) {
            if (limit.at <= this.#now[limit.of]) {
                limit.resolve();
            }
        }
    }

    // The result of the promise, or undefined if it takes longer.
    async within(promise, of, ms) {
        const limit = { of, at: this.#now[of] + ms };
        const isOver = new Promise((resolve) => {
            limit.resolve = resolve;
        });
        this.#limits.add(limit);
        try {
            return await Promise.race([promise, isOver]);
        } finally {
            this.#limits.delete(limit);
        }
    }

    stop() {
        clearInterval(this.#timer);
    }
}

function errorOf(failed, name) {
    const found = failed && Object.hasOwn(failed, name) ? failed[name] : undefined;
    return found && new RunnerError(found.error, found.message);
}

// The graphs of an application, imported one after another, and their reports.
// failed: the member of hello, if it is not null: graphs that are not imported, with their errors; the
// others are then imported strictly one after another, so that the last name is that of the cause.
// importing(names): called when the set of graphs that are being imported changes.
export async function loadGraphs(directory, definitions, failed = undefined, importing = () => {}) {
    const library = new Library(directory);
    const clock = new Clock();
    const graphs = new Map();
    const reports = new Map();
    const current = new Set();
    const open = async (graph) => {
        if (!graph.error) {
            await graph.load(directory, library);
        }
        return describeGraph(graph);
    };
    const report = async (graph) => {
        const found = await clock.within(open(graph), 'spent', LIMIT_MS)
            ?? graph.giveUp(LIMIT_MS / 1000);
        reports.set(graph.name, found);
        current.delete(graph.name);
        importing([...current]);
    };
    await whileImporting(async () => {
        const ends = [];
        for (const [name, definition] of Object.entries(definitions)) {
            const graph = new Graph(name, definition);
            graphs.set(name, graph);
            graph.error = errorOf(failed, name);
            if (!graph.error) {
                importing([...current.add(name)]);
            }
            const end = report(graph);
            ends.push(end);
            await (failed ? end : clock.within(end, 'still', OVERTAKE_MS));
        }
        await Promise.all(ends);
    });
    clock.stop();
    return { graphs, reports: Object.fromEntries(reports), runtime: runtime(library) };
}
