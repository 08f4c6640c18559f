// SPDX-License-Identifier: Apache-2.0
// The scenarios of all topics.
import './threads.mjs';
import './runs.mjs';
import './streams.mjs';
import './cuts.mjs';
import './thread_streams.mjs';
import './waits.mjs';
import './stateless.mjs';
