// SPDX-License-Identifier: Apache-2.0
/** The graph: a model and its tools in a loop, until the model calls none. */

import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";

import { ScriptedModel } from "./model.js";
import { tools } from "./tools.js";

// A real one: new ChatAnthropic({...}).bindTools(tools)
const model = new ScriptedModel({});

async function agent(state: typeof MessagesAnnotation.State) {
  return { messages: [await model.invoke(state.messages)] };
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("agent", agent)
  .addNode("tools", new ToolNode(tools))
  .addEdge(START, "agent")
  .addConditionalEdges("agent", toolsCondition)
  .addEdge("tools", "agent")
  .compile();
