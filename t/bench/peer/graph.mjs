// SPDX-License-Identifier: Apache-2.0
// One node that answers one message: what the demo model does for "hello".
import { AIMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const answer = process.env.PEER_ANSWER;

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("agent", () => ({ messages: [new AIMessage(answer)] }))
  .addEdge(START, "agent")
  .addEdge("agent", END)
  .compile();
