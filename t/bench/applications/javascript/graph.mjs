// SPDX-License-Identifier: Apache-2.0
// The graphs of the bench, each of one node.
import { AIMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const answer = () => ({ messages: [new AIMessage("You said: hello")] });

// Answers one message: what the demo model does for `hello`.
export const builder = new StateGraph(MessagesAnnotation)
  .addNode("agent", async () => answer())
  .addEdge(START, "agent")
  .addEdge("agent", END);
export const graph = builder.compile();

// The same answer from a chat model that sends it in parts.
export const chat = new StateGraph(MessagesAnnotation)
  .addNode("chat", async ({ messages }) => ({
    messages: [await new FakeListChatModel({ responses: ["You said: hello"] }).invoke(messages)],
  }))
  .addEdge(START, "chat")
  .addEdge("chat", END)
  .compile();

// Waits 50 ms.
export const waiter = new StateGraph(MessagesAnnotation)
  .addNode("wait", () => new Promise((resolve) => setTimeout(() => resolve(answer()), 50)))
  .addEdge(START, "wait")
  .addEdge("wait", END)
  .compile();
