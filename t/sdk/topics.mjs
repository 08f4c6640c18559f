// SPDX-License-Identifier: Apache-2.0
// The scenarios of all topics.
import './assistants.mjs';
import './threads.mjs';
import './runs.mjs';
import './streams.mjs';
import './ends.mjs';
import './cuts.mjs';
import './thread_streams.mjs';
import './waits.mjs';
import './stateless.mjs';
import './store.mjs';
