// SPDX-License-Identifier: Apache-2.0
// One node that answers one message: what the demo model does for `hello`.
import { AIMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

export const builder = new StateGraph(MessagesAnnotation)
  .addNode("agent", async () => ({ messages: [new AIMessage("You said: hello")] }))
  .addEdge(START, "agent")
  .addEdge("agent", END);
export const graph = builder.compile();
