// SPDX-License-Identifier: Apache-2.0
// A single node, as a new project begins.
import { StateGraph } from '@langchain/langgraph';
import type { RunnableConfig } from '@langchain/core/runnables';
import { StateAnnotation } from './state.js';

const callModel = async (
    state: typeof StateAnnotation.State, config: RunnableConfig,
): Promise<typeof StateAnnotation.Update> => ({
    changeme: `${state.changeme}, ${config.configurable?.tone}, from ${process.env.PLACE}` });

const builder = new StateGraph(StateAnnotation)
    .addNode('callModel', callModel)
    .addEdge('__start__', 'callModel');

export const graph = builder.compile();
graph.name = 'New Agent';
