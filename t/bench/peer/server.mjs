// SPDX-License-Identifier: Apache-2.0
// @langchain/langgraph-api as its CLI starts it (10 workers), without the CLI:
//   node server.mjs FOLDER     what it keeps goes there; prints the port
import { fileURLToPath } from "node:url";
import { startServer } from "@langchain/langgraph-api/server";

const graphs = fileURLToPath(new URL("graph.mjs", import.meta.url));
const { host } = await startServer({
  port: 0,
  host: "127.0.0.1",
  nWorkers: 10,
  cwd: process.argv[2],
  graphs: { agent: `${graphs}:graph`, chat: `${graphs}:chat` },
});
console.log(`port ${host.split(":").pop()}`);
