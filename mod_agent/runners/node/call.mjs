// SPDX-License-Identifier: Apache-2.0
// Operations on a graph without a run of its nodes: update, describe.
import { RunnerError } from './errors.mjs';
import { DESCRIBE, UPDATE } from './graphs.mjs';
import { Job } from './job.mjs';
import { drawingOf, schemasOf } from './report.mjs';

export class Call extends Job {
    #operations = {
        update: (given) => this.#update(given),
        describe: (given) => this.#describe(given),
    };

    accessContext() {
        return this.message.op === 'update' ? UPDATE : DESCRIBE;
    }

    async perform() {
        const operation = this.#operations[this.message.op];
        if (!operation) {
            throw new RunnerError('UnknownOperationError', `there is no operation "${this.message.op}"`);
        }
        await this.open();
        await operation(this.message.arguments);
    }

    // --- update ----------------------------------------------------------------

    // One superstep after another, each from the checkpoint of the one before.
    async #update({ supersteps }) {
        const ns = this.message.ns ?? '';
        // The library finds the graph by its namespace.
        let config = { configurable: { ...this.configurable(), checkpoint_ns: ns } };
        let parent = this.message.checkpoint?.checkpoint_id ?? null;
        for (const updates of supersteps) {
            const step = { updates: updates.map((update) => this.#toUpdate(update)) };
            config = await this.graph.bulkUpdateState(config, [step]);
            const id = config.configurable.checkpoint_id;
            this.records.reuse();
            const state = await this.readState(id, ns);
            await this.checkpoints.send({
                ns, id, parent, values: state.values, next: state.next, tasks: state.tasks,
                metadata: { ...state.metadata, writes: writesOf(updates) } });
            parent = id;
        }
    }

    #toUpdate({ values, as_node: node, command }) {
        // The library takes pairs as the update of a command only.
        const form = command ?? (Array.isArray(values) ? { update: values } : undefined);
        return {
            values: form ? this.toCommand(form) : values ?? null,
            ...(node === null || node === undefined ? {} : { asNode: node }),
        };
    }

    // --- describe --------------------------------------------------------------

    async #describe({ what, xray, namespace, recurse }) {
        if (what === 'schemas') {
            this.result = { value: schemasOf(this.graph, this.library) };
        } else if (what === 'graph') {
            this.result = { value: await drawingOf(this.graph, xray ?? false) };
        } else if (what === 'subgraphs') {
            this.result = { value: await this.#subgraphs(namespace ?? undefined, recurse === true) };
        } else {
            throw new RunnerError('ValueError', `a graph has no "${what}"`);
        }
    }

    async #subgraphs(namespace, recurse) {
        const found = {};
        const isRequested = (ns) => namespace === undefined || ns === namespace || (recurse && ns.startsWith(`${namespace}|`));
        for await (const [ns, graph] of this.graph.getSubgraphsAsync(undefined, recurse || namespace !== undefined)) {
            if (isRequested(ns)) {
                found[ns] = schemasOf(graph, this.library);
            }
        }
        return found;
    }
}

// {node: values} of the updates that name their node, or null.
function writesOf(updates) {
    const known = updates.filter((update) => update.as_node);
    return known.length === 0 ? null : Object.fromEntries(known.map(
        (update) => [update.as_node, update.command ? update.command.update ?? null : update.values]));
}
