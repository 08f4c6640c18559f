// SPDX-License-Identifier: Apache-2.0
// What the published JavaScript SDK sees of the server; prints TAP. Takes the
// folder where it is installed.
import './threads.mjs';
import './runs.mjs';
import './streams.mjs';
import './cuts.mjs';
import { playAll } from './tap.mjs';

await playAll();
// Connections that are kept for a next request must not keep the process.
process.exit(process.exitCode);
