// SPDX-License-Identifier: Apache-2.0
// The library's checkpointer: one object for all runs, which passes each call on
// to the records of the run in whose asynchronous calls it happens, or, where code has left
// these, as with a queue of its own, of the run on the thread that the configuration names.
import { RunnerError } from './errors.mjs';
import { currentRun } from './log.mjs';
import { nextVersion } from './records.mjs';

// The runs and calls of this process.
export const executing = new Set();

function records(config) {
    const threadId = config?.configurable?.thread_id;
    const run = currentRun.getStore()
        ?? [...executing].find((job) => threadId !== undefined && job.records && job.message.thread_id === threadId);
    if (!run) {
        throw new RunnerError('RuntimeError', 'checkpoints can be used by a run only');
    }
    return run.records;
}

// A saver for one build of the library: its base class must be of the graph's build.
export function makeSaver(library) {
    class Saver extends library.BaseCheckpointSaver {
        async getTuple(config) {
            return records(config).getTuple(config);
        }

        async* list(config, options) {
            yield* records(config).list(config, options);
        }

        async put(config, checkpoint, metadata, newVersions) {
            return records(config).put(config, checkpoint, metadata, newVersions);
        }

        async putWrites(config, writes, taskId, taskPath) {
            return records(config).putWrites(config, writes, taskId, taskPath);
        }

        async deleteThread() {
            throw new RunnerError('NotImplementedError', 'The server deletes threads: DELETE /threads/{thread_id}');
        }

        async getDeltaChannelHistory({ config, channels }) {
            return records(config).delta(config, channels);
        }

        getNextVersion(current) {
            return nextVersion(current);
        }
    }
    return new Saver();
}
