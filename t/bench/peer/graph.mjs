// SPDX-License-Identifier: Apache-2.0
// Graphs of one node that answer one message: what the demo model does for "hello".
import { AIMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const answer = process.env.PEER_ANSWER;

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("agent", () => ({ messages: [new AIMessage(answer)] }))
  .addEdge(START, "agent")
  .addEdge("agent", END)
  .compile();

// The same answer from a chat model that sends it in parts.
export const chat = new StateGraph(MessagesAnnotation)
  .addNode("chat", async ({ messages }) => ({
    messages: [await new FakeListChatModel({ responses: [answer] }).invoke(messages)],
  }))
  .addEdge(START, "chat")
  .addEdge("chat", END)
  .compile();
