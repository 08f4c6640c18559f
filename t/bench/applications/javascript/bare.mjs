// SPDX-License-Identifier: Apache-2.0
// Processor time of the bare library with its checkpointer in memory, in milliseconds.
//   bare.mjs runs N        of a run, each on a thread of its own
//   bare.mjs chat TURNS    of a turn of one chat: the mean of turns 6 to 15, and of the last ten
//   bare.mjs lines         a run for each line of standard input, and a line after it: the caller measures
import { createInterface } from "node:readline";

import { MemorySaver } from "@langchain/langgraph";

import { builder } from "./graph.mjs";

const input = { messages: [{ role: "user", content: "hello" }] };
const graph = builder.compile({ checkpointer: new MemorySaver() });

async function run(thread) {
  // The modes that the runner requests for a client that wants `values`.
  const options = { configurable: { thread_id: thread }, streamMode: ["checkpoints", "tasks", "values"], subgraphs: true };
  for await (const _ of await graph.stream(input, options));
}

async function meanMs(threads) {
  const begin = process.cpuUsage();
  for (const thread of threads) {
    await run(thread);
  }
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1000 / threads.length;
}

const numbered = (name, count) => Array.from({ length: count }, (_, number) => `${name}${number}`);
const turns = (count) => Array(count).fill("chat");

const measures = {
  async runs(count) {
    await meanMs(numbered("warm-up ", 1 + Math.floor(count / 10)));
    console.log(await meanMs(numbered("", count)));
  },
  async chat(count) {
    await meanMs(numbered("warm-up ", 100));
    await meanMs(turns(5));
    const tenth = await meanMs(turns(10));
    await meanMs(turns(count - 25));
    console.log(tenth, await meanMs(turns(10)));
  },
  async lines() {
    for await (const line of createInterface({ input: process.stdin })) {
      await run(line);
      console.log();
    }
  },
};
await measures[process.argv[2]](Number(process.argv[3]));
