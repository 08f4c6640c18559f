// SPDX-License-Identifier: Apache-2.0
// Whose memories they are.
import { Annotation, type LangGraphRunnableConfig } from '@langchain/langgraph';

export const ConfigurationAnnotation = Annotation.Root({ user_id: Annotation<string> });

export function userOf(config?: LangGraphRunnableConfig): string {
    return config?.configurable?.user_id || 'default';
}
