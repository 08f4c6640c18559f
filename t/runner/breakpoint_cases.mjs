// SPDX-License-Identifier: Apache-2.0
// The cases of breakpoint_cases.json for the runner for JavaScript: prints TAP for parts.t.
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { Breakpoints, plainForm } from '../../mod_agent/runners/node/breakpoints.mjs';
import { Known } from '../../mod_agent/runners/node/known.mjs';

const TASKS = '__pregel_tasks';
const UNSEEN = '__unseen__';
const HIDDEN = 'langsmith:hidden';

class GraphInterrupt extends Error {}

const mapValues = (object, change) => Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));

// A version as the checkpointer makes them; the fraction is the random part.
function version(number) {
    return `${String(Math.trunc(number)).padStart(32, '0')}.${String(Math.round((number % 1) * 10)).padStart(16, '0')}`;
}

function graphOf({ nodes = {}, before = [], after = [] }) {
    const subgraphs = mapValues(nodes, ({ subgraph }) => subgraph && graphOf(subgraph));
    return {
        nodes: Object.fromEntries(Object.entries(nodes).map(([name, { hidden, isCalled }]) => (
            [name, { tags: hidden ? [HIDDEN] : undefined, bound: isCalled ? undefined : subgraphs[name] }]))),
        interruptBefore: before,
        interruptAfter: after,
        * getSubgraphs(name) {
            if (subgraphs[name]) {
                yield [name, subgraphs[name]];
            }
        },
    };
}

function storedOf(id, { ns = '', parent = null, source = 'loop', step = 0, versions, seen = {}, sends = [], isOld, next = ['next'],
    writes = [], parents = {} }) {
    const checkpoint = { id, channel_versions: mapValues(versions, version) };
    if (seen !== null) {
        checkpoint.versions_seen = mapValues(seen, (numbers) => mapValues(numbers, version));
    }
    const tuple = { ns, checkpoint_id: id, parent, run_id: 'run', checkpoint, metadata: { source, step, parents } };
    const tasks = sends.map((node) => ({ node }));
    return { next, tuple, writes: writes.map(([taskId, channel]) => [taskId, 0, channel, null]), channels: { [TASKS]: isOld ? [[], tasks] : tasks } };
}

// Breakpoints of a run, which may be many.
class Names extends Array {
    includes() {
        throw new Error('names are looked through');
    }
}

class Case {
    constructor(form, common) {
        this.form = form;
        this.stored = Object.fromEntries(Object.entries({ ...common.checkpoints, ...form.checkpoints })
            .map(([id, one]) => [id, storedOf(id, one)]));
        this.graph = graphOf({ ...common.graph, ...form.graph });
        const known = new Known(false);
        const step = (id) => this.stored[id].tuple.metadata.step;
        form.read?.forEach((id) => known.addRead(id, step(id)));
        form.put?.forEach((id) => known.addPut(this.stored[id].tuple.ns, { id, step: step(id) }));
        this.reads = 0;
        this.breakpoints = new Breakpoints(form.run ?? 'run', known, async (ns, id) => this.read(ns, id), async (references) => references,
            async (tuple) => this.hasParts(tuple));
    }

    hasParts({ ns, checkpoint_id: id, metadata }) {
        const parents = { ...metadata.parents, [ns]: id };
        return Object.values(this.stored).some(({ tuple }) => isDeepStrictEqual(tuple.metadata.parents, parents));
    }

    read(ns, id) {
        this.reads += 1;
        const found = this.stored[id ?? this.form.start];
        return found?.tuple.ns === ns ? found : undefined;
    }

    async begin() {
        if (this.form.start !== undefined) {
            const start = this.stored[this.form.start];
            this.breakpoints.start = start?.tuple;
            const checkpoint = start ? { next: start.next } : null;
            const given = mapValues(this.form.message ?? {}, (value) => (Array.isArray(value) ? Names.from(value) : value));
            await this.breakpoints.begin(this.graph, { GraphInterrupt }, { checkpoint, ...given });
        }
    }

    before(expected) {
        const { before = [] } = this.breakpoints;
        return isDeepStrictEqual(before.length === 0 ? null : before, expected);
    }

    formOf(id, unseen) {
        const { tuple } = this.stored[id];
        const kept = structuredClone(tuple);
        const expected = structuredClone(tuple.checkpoint);
        if (unseen !== null) {
            expected.channel_versions[UNSEEN] = version(unseen);
        }
        const found = this.breakpoints.form(tuple);
        // None of them changes what it is given.
        return isDeepStrictEqual([plainForm(found), found, tuple], [kept.checkpoint, expected, kept]);
    }

    stops(id, next, expected) {
        const config = { configurable: { checkpoint_id: id } };
        return this.breakpoints.stopsAt({ config, metadata: this.stored[id].tuple.metadata, next }) === expected;
    }

    async check(id, expected, kind = 'goes on') {
        try {
            const found = await this.breakpoints.check(this.stored[id], { __pregel_resuming: kind === 'goes on' });
            return expected !== true && found === this.stored[expected || id];
        } catch (error) {
            return error instanceof GraphInterrupt && expected === true;
        }
    }
}

const common = JSON.parse(readFileSync(new URL('breakpoint_cases.json', import.meta.url), 'utf8'));
for (const [number, form] of common.cases.entries()) {
    const one = new Case(form, common);
    await one.begin();
    const methods = { before: one.before, reads: (number) => one.reads === number, form: one.formOf, stops: one.stops, check: one.check };
    const failed = [];
    for (const [what, ...values] of form.checks) {
        if (!await methods[what].apply(one, values)) {
            failed.push(`# not ${JSON.stringify([what, ...values])}; before: ${JSON.stringify(one.breakpoints.before)}`);
        }
    }
    console.log([`${failed.length > 0 ? 'not ok' : 'ok'} ${number + 1} - javascript: breakpoints: ${form.title}`, ...failed].join('\n'));
}
console.log(`1..${common.cases.length}`);
