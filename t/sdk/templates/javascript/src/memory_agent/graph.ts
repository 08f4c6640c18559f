// SPDX-License-Identifier: Apache-2.0
// Remembers what the user says, in the store, under the user's id.
import { randomUUID } from 'node:crypto';
import { AIMessage, ToolMessage } from '@langchain/core/messages';
import { END, MessagesAnnotation, START, StateGraph, type BaseStore, type LangGraphRunnableConfig } from '@langchain/langgraph';
import { ConfigurationAnnotation, userOf } from './configuration.js';

function getStoreFromConfigOrThrow(config: LangGraphRunnableConfig): BaseStore {
    if (!config.store) {
        throw new Error('Store not found in configuration');
    }
    return config.store;
}

async function callModel({ messages }: typeof MessagesAnnotation.State, config: LangGraphRunnableConfig) {
    const last = messages.at(-1)!;
    const [, content] = /^remember (.*)/.exec(last.getType() === 'human' ? last.text : '') ?? [];
    if (content !== undefined) {
        return { messages: [new AIMessage({
            content: '', tool_calls: [{ name: 'upsert_memory', args: { content }, id: 'call-1', type: 'tool_call' }] })] };
    }
    const found = await getStoreFromConfigOrThrow(config).search(['memories', userOf(config)], { query: last.text, limit: 10 });
    return { messages: [new AIMessage(`${userOf(config)}: ['${found.map(({ value }) => value.content).sort().join("', '")}']`)] };
}

async function storeMemory({ messages }: typeof MessagesAnnotation.State, config: LangGraphRunnableConfig) {
    const calls = (messages.at(-1) as AIMessage).tool_calls ?? [];
    return { messages: await Promise.all(calls.map(async ({ id, args }) => {
        await getStoreFromConfigOrThrow(config).put(['memories', userOf(config)], randomUUID(), { content: args.content });
        return new ToolMessage({ tool_call_id: id!, content: `Stored ${args.content}` });
    })) };
}

export const builder = new StateGraph({ stateSchema: MessagesAnnotation }, ConfigurationAnnotation)
    .addNode('call_model', callModel)
    .addNode('store_memory', storeMemory)
    .addEdge(START, 'call_model')
    .addConditionalEdges('call_model', ({ messages }) => (
        (messages.at(-1) as AIMessage).tool_calls?.length ? 'store_memory' : END), { store_memory: 'store_memory', [END]: END })
    .addEdge('store_memory', 'call_model');

export const graph = builder.compile();
graph.name = 'MemoryAgent';
