// SPDX-License-Identifier: Apache-2.0
import { Annotation } from '@langchain/langgraph';

export const StateAnnotation = Annotation.Root({ changeme: Annotation<string> });
