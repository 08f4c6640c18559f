// SPDX-License-Identifier: Apache-2.0
// Processor time of a run in the bare library.
import { MemorySaver } from "@langchain/langgraph";

import { builder } from "./graph.mjs";

const input = { messages: [{ role: "user", content: "hello" }] };
const count = Number(process.argv[2]);
const graph = builder.compile({ checkpointer: new MemorySaver() });

async function execute(first, runs) {
  for (let number = first; number < first + runs; number += 1) {
    const options = { configurable: { thread_id: String(number) }, streamMode: ["checkpoints", "tasks"], subgraphs: true };
    for await (const _ of await graph.stream(input, options));
  }
}

await execute(0, Math.floor(count / 10));
const begin = process.cpuUsage();
await execute(count, count);
const { user, system } = process.cpuUsage(begin);
console.log((user + system) / 1000 / count);
