// SPDX-License-Identifier: Apache-2.0
// The graph of histories.t in JavaScript; histories.py has the same one. Executed as a program, it does what the lines
// of its input ask for with the bare library, and answers each with the states of the thread.
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Annotation, Command, END, interrupt, MemorySaver, Send, START, StateGraph } from '@langchain/langgraph';

const log = () => Annotation({ reducer: (left, right) => left.concat(right), default: () => [] });
const State = Annotation.Root({ log: log(), n: Annotation(), most: Annotation(), fail: Annotation() });

async function plan(state) {
    if (state.fail) {
        throw new TypeError('as the input said');
    }
    return { log: [{ by: 'plan' }], n: (state.n ?? 0) + 1 };
}

function route(state) {
    return [['join'], ['b', 'c'], [new Send('w', { i: 1 }), new Send('w', { i: 2 }), 'b'], ['sub', 'b']][state.n % 4];
}

const b = async () => ({ log: [{ by: 'b' }] });
const c = async () => ({ log: [{ by: 'c', said: [interrupt('c1'), interrupt('c2')] }] });
const w = async ({ i }) => ({ log: [{ by: 'w', said: i === 2 ? interrupt('w') : null }] });
const join = async () => ({ log: [{ by: 'join' }] });
const again = (state) => (state.n < (state.most ?? 1) ? 'plan' : END);

const s1 = async (state) => ({ log: [{ by: 's1', of: state.log.length }] });
const s2 = async () => ({ log: [{ by: 's2', said: interrupt('s') }] });

function make(checkpointer) {
    const sub = new StateGraph(Annotation.Root({ log: log() })).addNode('s1', s1).addNode('s2', s2)
        .addEdge(START, 's1').addEdge('s1', 's2').compile();
    const builder = new StateGraph(State);
    for (const [name, node] of Object.entries({ plan, b, c, w, sub, join })) {
        builder.addNode(name, node);
    }
    builder.addEdge(START, 'plan').addConditionalEdges('plan', route, ['join', 'b', 'c', 'w', 'sub']);
    for (const name of ['b', 'c', 'w', 'sub']) {
        builder.addEdge(name, 'join');
    }
    return builder.addConditionalEdges('join', again, ['plan', END]).compile({ checkpointer });
}

export const graph = make();

function commandOf({ resume, update, goto: target }, ids) {
    const isMap = resume !== null && typeof resume === 'object';
    const fields = {
        resume: isMap ? Object.fromEntries(Object.entries(resume).map(([question, answer]) => [ids[question], answer])) : resume,
        update, goto: target };
    return new Command(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)));
}

async function historyOf(bare, config) {
    const states = [];
    for await (const state of bare.getStateHistory(config)) {
        states.unshift(state);
    }
    return states;
}

const questionsOf = (state) => state.tasks.flatMap((task) => task.interrupts ?? []);

async function execute(bare, request, config) {
    const { at: number, op, before, after, command, input, values, as_node: node, durability } = request;
    const at = number === undefined || number === null ? config : (await historyOf(bare, config))[number].config;
    if (op === 'update') {
        await bare.updateState(at, values, node ?? undefined);
        return;
    }
    const ids = Object.fromEntries(questionsOf(await bare.getState(config)).map(({ value, id }) => [value, id]));
    await bare.invoke(command ? commandOf(command, ids) : input, {
        ...at, durability, ...(before ? { interruptBefore: before } : {}), ...(after ? { interruptAfter: after } : {}) });
}

async function perform(bare, request) {
    const config = { configurable: { thread_id: request.thread } };
    const error = await execute(bare, request, config).then(() => null, (caught) => caught?.name ?? String(caught));
    const states = await historyOf(bare, config);
    const numbers = Object.fromEntries(states.map((state, number) => [state.config.configurable.checkpoint_id, number]));
    const now = await bare.getState(config);
    return {
        error, values: now.values, next: [...now.next].sort(), questions: questionsOf(now).map(({ value }) => value),
        history: states.map((state) => ({
            values: state.values, next: [...state.next].sort(), source: state.metadata.source, step: state.metadata.step,
            parent: numbers[state.parentConfig?.configurable?.checkpoint_id] ?? null })) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const bare = make(new MemorySaver());
    for await (const line of createInterface({ input: process.stdin })) {
        // null: two commands have written one channel at a checkpoint, and the library can no longer read the thread.
        const answer = await perform(bare, JSON.parse(line)).catch((error) => {
            if (error.name !== 'InvalidUpdateError') {
                throw error;
            }
            return null;
        });
        process.stdout.write(`${JSON.stringify(answer)}\n`);
    }
}
