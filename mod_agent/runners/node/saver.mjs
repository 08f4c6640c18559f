// SPDX-License-Identifier: Apache-2.0
// The library's checkpointer: one object for all runs, which passes each call on
// to the records of the run in whose asynchronous calls it happens.
import { RunnerError } from './errors.mjs';
import { currentRun } from './log.mjs';
import { nextVersion } from './records.mjs';

function records() {
    const run = currentRun.getStore();
    if (!run) {
        throw new RunnerError('RuntimeError', 'checkpoints can be used by a run only');
    }
    return run.records;
}

// A saver for one build of the library: its base class must be of the graph's build.
export function makeSaver(library) {
    class Saver extends library.BaseCheckpointSaver {
        async getTuple(config) {
            return records().getTuple(config);
        }

        async* list(config, options) {
            yield* records().list(config, options);
        }

        async put(config, checkpoint, metadata, newVersions) {
            return records().put(config, checkpoint, metadata, newVersions);
        }

        async putWrites(config, writes, taskId, taskPath) {
            return records().putWrites(config, writes, taskId, taskPath);
        }

        async deleteThread() {
            throw new RunnerError('NotImplementedError', 'The server deletes threads: DELETE /threads/{thread_id}');
        }

        async getDeltaChannelHistory({ config, channels }) {
            return records().delta(config, channels);
        }

        getNextVersion(current) {
            return nextVersion(current);
        }
    }
    return new Saver();
}
