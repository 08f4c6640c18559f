// SPDX-License-Identifier: Apache-2.0
// Agents of the libraries above langgraph, with a model that does what it is told;
// agents.py has the same.
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { createDeepAgent } from 'deepagents';
import { createAgent, humanInTheLoopMiddleware, summarizationMiddleware } from 'langchain';
import { z } from 'zod';

// Calls the tools that the last message names, in lines `call NAME {arguments}`.
class Obedient extends BaseChatModel {
    constructor() {
        super({});
    }

    _llmType() {
        return 'obedient';
    }

    bindTools() {
        return this;
    }

    async _generate(messages) {
        const last = messages.at(-1);
        const lines = last.getType() === 'tool' ? [] : last.text.split('\n');
        const calls = lines.map((line) => /^call (\S+) (.*)$/.exec(line)).filter(Boolean)
            .map(([, name, text], number) => ({
                name, args: JSON.parse(text), id: `call-${messages.length}-${number}`, type: 'tool_call' }));
        const text = calls.length > 0 ? '' : `done: ${last.text}`;
        return { generations: [{ text, message: new AIMessage({ content: text, tool_calls: calls }) }] };
    }
}

const find = tool(({ name }) => `${name} is on shelf 5`, {
    name: 'find', description: 'Finds a product.', schema: z.object({ name: z.string() }) });
const order = tool(async ({ name }) => `${name} is ordered`, {
    name: 'order', description: 'Orders a product.', schema: z.object({ name: z.string() }) });

export const agent = createAgent({
    model: new Obedient(), tools: [find, order], systemPrompt: 'You sell things.',
    middleware: [humanInTheLoopMiddleware({ interruptOn: { order: true } })] });
export const brief = createAgent({
    model: new Obedient(), tools: [find],
    middleware: [summarizationMiddleware({ model: new Obedient(), trigger: { messages: 6 }, keep: { messages: 2 } })] });
export const react = createReactAgent({ llm: new Obedient(), tools: [find, order] });
export const deep = createDeepAgent({
    model: new Obedient(), tools: [order], interruptOn: { order: true },
    subagents: [{ name: 'finder', description: 'Finds products', systemPrompt: 'Find it.', tools: [find] }] });
