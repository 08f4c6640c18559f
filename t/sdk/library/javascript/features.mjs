// SPDX-License-Identifier: Apache-2.0
// Features of the library, a graph for each; features.py has the same graphs.
import { createHash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { AIMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { FakeStreamingChatModel } from '@langchain/core/utils/testing';
import {
    Annotation, Command, END, entrypoint, getPreviousState, interrupt, MessagesAnnotation, Send, START, StateGraph, task,
} from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { InMemoryCache } from '@langchain/langgraph-checkpoint';
import { z } from 'zod';

const Notes = Annotation.Root({
    n: Annotation(),
    notes: Annotation({ reducer: (left, right) => [...left, ...right], default: () => [] }),
});

// --- Streams: a model, a tool and a writer in a subgraph -----------------------

const Talk = Annotation.Root({ ...MessagesAnnotation.spec, n: Annotation() });

const look = tool(async ({ place }, config) => {
    config.writer?.({ 'looks at': place });
    return `${place} is empty`;
}, { name: 'look', description: 'Looks at a place.', schema: z.object({ place: z.string() }) });

const inner = new StateGraph(Talk)
    .addNode('choose', async ({ messages }) => ({ messages: [new AIMessage({
        content: '', id: `choice-${messages.length}`,
        tool_calls: [{ name: 'look', args: { place: 'the shelf' }, id: 'call-1', type: 'tool_call' }] })] }))
    .addNode('tools', new ToolNode([look]))
    .addNode('answer', async ({ messages }) => ({
        messages: [await new FakeStreamingChatModel({ chunks: ['It', ' ', 'is', ' ', 'empty.'].map((content) => ({ content })) })
            .invoke(messages)] }))
    .addEdge(START, 'choose').addEdge('choose', 'tools').addEdge('tools', 'answer').compile();

export const stream = new StateGraph(Talk)
    .addNode('inner', inner)
    .addNode('count', async ({ messages }, config) => {
        config.writer?.({ counts: messages.length });
        return { n: messages.length };
    })
    .addEdge(START, 'inner').addEdge('inner', 'count').compile();

// --- Interrupts, Send, commands ------------------------------------------------

function question(name) {
    return async () => ({ notes: [`${name}: ${interrupt({ for: name })}`] });
}

export const questions = new StateGraph(Notes)
    .addNode('red', question('red')).addNode('green', question('green')).addNode('blue', question('blue'))
    .addEdge(START, 'red').addEdge(START, 'green').addEdge(START, 'blue').compile();

export const spread = new StateGraph(Notes)
    .addNode('square', async ({ n }) => ({ notes: [n ** 2] }))
    .addConditionalEdges(START, ({ n }) => Array.from({ length: n }, (_, number) => new Send('square', { n: number })), ['square'])
    .compile();

const child = new StateGraph(Notes)
    .addNode('to_parent', () => new Command({
        graph: Command.PARENT, goto: 'second', update: { notes: ['from the child'] } }))
    .addEdge(START, 'to_parent').compile();

export const handoff = new StateGraph(Notes)
    .addNode('child', child, { ends: ['second'] })
    .addNode('second', () => ({ notes: ['second'] }))
    .addEdge(START, 'child').compile();

// To the parent of a graph that has none here: its caller gets the command.
export const leave = new StateGraph(Notes)
    .addNode('out', () => new Command({ graph: Command.PARENT, goto: 'second', update: { notes: ['from afar'] } }))
    .addEdge(START, 'out').compile();

// --- Retries, caches, limits, errors -------------------------------------------

const tried = new Map();

class OutOfStockError extends Error {
    name = 'OutOfStockError';
}

function attempt(name) {
    tried.set(name, (tried.get(name) ?? 0) + 1);
    return tried.get(name);
}

export const attempts = new StateGraph(Notes)
    .addNode('third_time', async (_, config) => {
        const number = attempt(config.metadata.run_id);
        if (number < 3) {
            throw new OutOfStockError('not yet');
        }
        return { notes: [`attempt ${number}`] };
    }, { retryPolicy: { initialInterval: 1, jitter: false, maxAttempts: 3, retryOn: (error) => error.name === 'OutOfStockError' } })
    .addNode('cached', async () => ({ notes: [`computed ${attempt('cached')}`] }),
        { cachePolicy: { keyFunc: ([{ n }]) => String(n) } })
    .addEdge(START, 'third_time').addEdge('third_time', 'cached').compile({ cache: new InMemoryCache() });

export const endless = new StateGraph(Notes)
    .addNode('again', ({ n }) => ({ n: n + 1 }))
    .addEdge(START, 'again').addEdge('again', 'again').compile();

export const fail = new StateGraph(Notes)
    .addNode('before', () => ({ n: 1 }))
    .addNode('sell', async () => {
        throw new OutOfStockError('no more cups');
    })
    .addEdge(START, 'before').addEdge('before', 'sell').compile();

// --- Context and configuration -------------------------------------------------

const Settings = z.object({ model: z.string().optional(), user_id: z.string().optional() });

export const settings = new StateGraph(Notes, Settings)
    .addNode('show', async (_, runtime) => ({ notes: [
        runtime.context.model ?? 'small', runtime.context.user_id ?? 'nobody', runtime.configurable.user_id ?? null] }))
    .addEdge(START, 'show').compile();

export const strict = new StateGraph(Notes, z.object({ user_id: z.string() }))
    .addNode('show', async (_, runtime) => ({ notes: [runtime.context.user_id] }))
    .addEdge(START, 'show').compile();

// --- Sizes and values ----------------------------------------------------------

function levels(count) {
    let graph = ({ n }) => ({ n: n + interrupt('how many?') });
    for (let level = 0; level < count; level += 1) {
        graph = new StateGraph(Notes).addNode('level', graph).addEdge(START, 'level').compile();
    }
    return graph;
}

export const deep = levels(11);

const Values = Annotation.Root({ text: Annotation(), data: Annotation(), notes: Notes.spec.notes });

export const values = new StateGraph(Values)
    .addNode('make', async () => ({ text: 'x'.repeat(6_000_000), data: Uint8Array.from({ length: 256 }, (_, byte) => byte) }))
    .addNode('measure', async ({ text, data }) => ({
        notes: [text.length, createHash('sha256').update(data).digest('hex').slice(0, 8)] }))
    .addEdge(START, 'make').addEdge('make', 'measure').compile();

export const beside = new StateGraph(Notes)
    .addNode('blocks', () => {
        const end = performance.now() + 200;
        while (performance.now() < end);
        return { notes: ['blocked'] };
    })
    .addNode('opens', async () => {
        await setTimeout(10);
        return { notes: ['opened'] };
    })
    .addEdge(START, 'blocks').addEdge(START, 'opens').compile();

// n: seconds.
export const waits = new StateGraph(Notes)
    .addNode('wait', async ({ n }, { signal }) => {
        await setTimeout(1000 * n, undefined, { signal });
        return { notes: ['waited'] };
    })
    .addEdge(START, 'wait').compile();

export const chat = new StateGraph(MessagesAnnotation)
    .addNode('reply', async ({ messages }) => ({ messages: [new AIMessage(`reply to ${messages.at(-1).content}`)] }))
    .addEdge(START, 'reply').addEdge('reply', END).compile();

function step(name) {
    return () => ({ notes: [name] });
}

export const steps = new StateGraph(Notes)
    .addNode('one', step('one')).addNode('two', step('two')).addNode('three', step('three'))
    .addEdge(START, 'one').addEdge('one', 'two').addEdge('two', 'three').compile({ interruptBefore: ['three'] });

// --- Subgraphs that are edited and gone back to ---------------------------------

// A graph whose subgraph asks after two steps: with the checkpoints of its parent, or with a
// history of its own.
function around(checkpointer) {
    const inside = new StateGraph(Notes)
        .addNode('one', step('one')).addNode('two', step('two'))
        .addNode('ask', ({ notes }) => ({ notes: [`${interrupt('which?')} of ${notes.join(' ')}`] }))
        .addEdge(START, 'one').addEdge('one', 'two').addEdge('two', 'ask').compile({ checkpointer });
    return new StateGraph(Notes).addNode('inside', inside).addNode('last', step('last'))
        .addEdge(START, 'inside').addEdge('inside', 'last').compile();
}

export const inherits = around(undefined);
export const keeps = around(true);

// --- The functional API ----------------------------------------------------------

const double = task('double', async (n) => n * 2);

export const functional = entrypoint('functional', async (n) => {
    const doubled = await Promise.all([0, 1, 2].map((more) => double(n + more)));
    return entrypoint.final({ value: [...doubled, getPreviousState() ?? null], save: n });
});
