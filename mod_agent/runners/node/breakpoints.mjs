// SPDX-License-Identifier: Apache-2.0
// Breakpoints in a repeated attempt of a run, which does not pass those that no client has approved.
// The library takes a graph that goes on from a checkpoint for one that a client continues: it notes the versions of
// all channels as seen, and passes the breakpoint before the next nodes. An attempt that follows a lost one goes on in
// the same way from a checkpoint that its run has made. So the library reads that one with the version of a channel
// which the graph does not have: it stays unseen, and the library stops where it would have stopped in the lost attempt.
// A breakpoint after nodes is one that the library looks for at the end of their step only. Here the root graph stops
// before the nodes that follow, and a subgraph is interrupted when the library reads its checkpoint.
// Which breakpoints the graph has that a function calls is not known. Where nothing follows its checkpoint, the library
// reads the one before it, with the results of the nodes: it ends their step once more, and stops by itself or goes on.
// A subgraph that keeps its state has a checkpoint from each call before. In a repeated attempt the library would
// continue there in place of beginning anew, and return what the earlier call has returned.
import { isDeepStrictEqual } from 'node:util';
import { UPDATE_ID } from './checkpoints.mjs';

const INTERRUPT = '__interrupt__';
const RESUMING = '__pregel_resuming';
const TASKS = '__pregel_tasks';
// In the library's configuration: the namespaces of a subgraph's callers -> their checkpoints.
const CALLERS = 'checkpoint_map';
// The tag of nodes that "*" leaves out.
const HIDDEN = 'langsmith:hidden';
const UNSEEN = '__unseen__';
// Writes other than the results of a task.
const NO_RESULTS = ['__error__', '__error_source_node__', INTERRUPT, '__resume__'];

// A checkpoint of the library as it is stored: without the version that Breakpoints.form() has added.
export function plainForm(checkpoint) {
    if (checkpoint.channel_versions?.[UNSEEN] === undefined) {
        return checkpoint;
    }
    const { [UNSEEN]: _, ...versions } = checkpoint.channel_versions;
    return { ...checkpoint, channel_versions: versions };
}

// Breakpoints of a run, "*" or names. The library asks for each task whether its name is included: in the same time for any
// number of them.
function breakpointsOf(given) {
    if (!Array.isArray(given)) {
        return given ?? undefined;
    }
    const names = new Set(given);
    return Object.defineProperty([...given], 'includes', { value: (name) => names.has(name) });
}

// Whether one of the nodes is among the breakpoints, "*" or names, of its graph.
function meets(graph, breakpoints, names) {
    return breakpoints === '*' ? names.some((name) => !graph.nodes[name]?.tags?.includes(HIDDEN))
        : names.some((name) => breakpoints?.includes(name));
}

// The subgraph of a namespace, or undefined, and whether it is certain: that the nodes are the graphs themselves. A function
// may call another graph than the one that the library lists.
function graphAt(root, ns) {
    let [graph, isCertain] = [root, true];
    for (const part of ns.split('|')) {
        const [name] = part.split(':');
        const node = graph?.getSubgraphs ? graph.nodes[name] : undefined;
        const [found] = node ? graph.getSubgraphs(name) : [];
        graph = found?.[1];
        isCertain &&= graph !== undefined && node.bound === graph;
    }
    return { graph, isCertain };
}

// The number of the newest of some versions, without its random part.
function latestOf([, versions]) {
    return Math.max(...Object.values(versions).map((version) => Number.parseInt(version, 10)));
}

export class Breakpoints {
    #runId;
    #known;
    #read;
    #load;
    #hasParts;
    #graph;
    #library;
    // The tuple of the checkpoint from which the run starts, if it is the last one.
    start;
    // The nodes before which the root graph stops, and the run's own after which it does.
    before;
    after;
    // Checkpoints that lost attempts have made and this one has read.
    #own = new Set();

    // read(ns, id): a checkpoint {tuple, channels, writes}; load(references): their values; hasParts(tuple): whether a subgraph of
    // the step after a checkpoint has one.
    constructor(runId, known, read, load, hasParts) {
        this.#runId = runId;
        this.#known = known;
        this.#read = read;
        this.#load = load;
        this.#hasParts = hasParts;
    }

    // message: `start`.
    async begin(graph, library, message) {
        this.#graph = graph;
        this.#library = library;
        this.before = breakpointsOf(message.interrupt_before) ?? graph.interruptBefore;
        this.after = breakpointsOf(message.interrupt_after);
        if (await this.#isAfter(graph, this.after ?? graph.interruptAfter, this.start)) {
            this.before = message.checkpoint.next;
        }
    }

    // Whether a lost attempt has made the checkpoint, so that a breakpoint there is approved by nobody. A run that passes
    // one at a checkpoint that it makes for that (a fork, a command) has stored the versions as seen.
    #isOpen(tuple) {
        if (tuple?.run_id !== this.#runId || this.#known.hasPut(tuple.checkpoint_id)) {
            return false;
        }
        const { versions_seen: { [INTERRUPT]: seen = {} } = {}, channel_versions: versions = {} } = tuple.checkpoint;
        return Object.entries(versions).some(([name, version]) => seen[name] === undefined || version > seen[name]);
    }

    // The checkpoint as the library is to read it.
    form(tuple) {
        const { checkpoint } = tuple;
        if (!this.#isOpen(tuple)) {
            return checkpoint;
        }
        const versions = checkpoint.channel_versions;
        const last = Object.values(versions).reduce((a, b) => (a > b ? a : b));
        return { ...checkpoint, channel_versions: { ...versions, [UNSEEN]: last } };
    }

    // Whether the library stops before the nodes that follow a root checkpoint, which it shows.
    stopsAt({ config, metadata, next }) {
        const isApproved = this.#known.wasRead(config?.configurable?.checkpoint_id, metadata?.step) && !this.#isOpen(this.start);
        return !isApproved && meets(this.#graph, this.before, next);
    }

    // Makes a subgraph begin anew whose checkpoint is of another call, in an attempt that goes on from one of its run.
    #beginAnew({ metadata }, configurable) {
        const callers = Object.entries(configurable[CALLERS] ?? {});
        if (callers.some(([, id]) => this.#own.has(id)) && callers.some(([ns, id]) => metadata?.parents?.[ns] !== id)) {
            delete configurable[RESUMING];
        }
    }

    // The library reads a checkpoint, with the `configurable` of the graph that does. Returns the one that it is to have. Throws
    // GraphInterrupt where a subgraph has stopped after a node.
    async check(stored, configurable) {
        const { tuple } = stored;
        if (tuple.run_id === this.#runId && !this.#known.hasPut(tuple.checkpoint_id)) {
            this.#own.add(tuple.checkpoint_id);
        }
        this.#beginAnew(tuple, configurable);
        // A graph that has stopped executes no task.
        if (tuple.ns === '' || configurable[RESUMING] !== true || !this.#isOpen(tuple) || stored.writes.length > 0) {
            return stored;
        }
        const { graph, isCertain } = graphAt(this.#graph, tuple.ns);
        const parent = isCertain ? undefined : await this.#beforeEnd(tuple);
        if (!parent && await this.#isAfter(graph, graph?.interruptAfter, tuple)) {
            throw new this.#library.GraphInterrupt();
        }
        return parent ?? stored;
    }

    // The parent of a subgraph's checkpoint, if it has the results of all nodes of the step that has made the checkpoint, and no
    // subgraph of the step that follows has a checkpoint.
    async #beforeEnd(tuple) {
        const makers = await this.#makers(tuple);
        const parent = makers.length > 0 && tuple.parent ? await this.#read(tuple.ns, tuple.parent) : undefined;
        const ended = new Set(parent?.writes.filter(([id, , channel]) => id !== UPDATE_ID && !NO_RESULTS.includes(channel)).map(([id]) => id));
        return parent && ended.size >= makers.length && !await this.#hasParts(tuple) ? parent : undefined;
    }

    async #isAfter(graph, after, tuple) {
        return after?.length > 0 && this.#isOpen(tuple) && meets(graph, after, await this.#makers(tuple));
    }

    // The nodes of the tasks whose step has made a checkpoint: they have seen other versions than at its parent.
    async #makers({ ns, parent: id, checkpoint, metadata }) {
        if (metadata?.source !== 'loop') {
            return [];
        }
        const parent = id ? await this.#read(ns, id) : undefined;
        const before = parent?.tuple.checkpoint.versions_seen ?? {};
        const seen = Object.entries(checkpoint.versions_seen)
            .filter(([name, versions]) => name !== INTERRUPT && Object.keys(versions).length > 0);
        const changed = seen.filter(([name, versions]) => !isDeepStrictEqual(versions, before[name]));
        if (parent?.tuple.metadata?.step + 1 !== metadata.step) {
            // With durability `exit` the steps between the two are not stored.
            const last = Math.max(...seen.map(latestOf));
            return changed.filter((entry) => latestOf(entry) === last).map(([name]) => name);
        }
        // A task that Send has made sees no version. Older libraries keep such tasks in a list beside another one.
        const [tasks] = await this.#load([parent.channels[TASKS] ?? null]);
        return [...changed.map(([name]) => name), ...(tasks ?? []).flat().map((task) => task?.node)];
    }
}
