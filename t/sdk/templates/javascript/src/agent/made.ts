// SPDX-License-Identifier: Apache-2.0
// A graph that a function makes for each use.
import { StateGraph } from '@langchain/langgraph';
import type { RunnableConfig } from '@langchain/core/runnables';
import { StateAnnotation } from './state.js';

export async function byConfig(config: RunnableConfig) {
    return new StateGraph(StateAnnotation)
        .addNode('say', () => ({ changeme: `for ${config.configurable?.tenant ?? 'all'}` }))
        .addEdge('__start__', 'say');
}
