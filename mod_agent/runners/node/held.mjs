// SPDX-License-Identifier: Apache-2.0
// Checkpoints of subgraphs in a run with durability `exit`, and what became of their tasks.
// The library shows each step, with the id of the checkpoint before the run, and saves the
// last one of some subgraphs when they end: those that stop or fail, and those that keep
// their state.

export class Held {
    // Namespace of the stream -> {ns, payload, ends}.
    #last = new Map();

    // The checkpoint that a subgraph shows, in place of its last one.
    show(namespace, ns, payload) {
        this.#last.set(namespace.join('|'), { ns, payload, ends: [] });
    }

    // The end of a task of the graph in that namespace.
    end(namespace, task) {
        this.#last.get(namespace.join('|'))?.ends.push(task);
        // The namespace of a subgraph with the id of its task is that of one which keeps
        // no state: it is not saved when it has ended.
        if (!task.error && !(task.interrupts?.length > 0)) {
            this.#last.delete([...namespace, `${task.name}:${task.id}`].join('|'));
        }
    }

    // {ns, payload, ends} of each subgraph, once.
    take() {
        const found = [...this.#last.values()];
        this.#last.clear();
        return found;
    }
}
