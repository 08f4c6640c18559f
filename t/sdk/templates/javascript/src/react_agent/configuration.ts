// SPDX-License-Identifier: Apache-2.0
// The choices of a run.
import { Annotation } from '@langchain/langgraph';
import type { RunnableConfig } from '@langchain/core/runnables';
import { SYSTEM_PROMPT_TEMPLATE } from './prompts.js';

export const ConfigurationSchema = Annotation.Root({
    systemPromptTemplate: Annotation<string>,
    model: Annotation<string>,
});

export function ensureConfiguration(config: RunnableConfig): typeof ConfigurationSchema.State {
    const configurable = config.configurable ?? {};
    return {
        systemPromptTemplate: configurable.systemPromptTemplate ?? SYSTEM_PROMPT_TEMPLATE,
        model: configurable.model ?? 'demo/scripted',
    };
}
