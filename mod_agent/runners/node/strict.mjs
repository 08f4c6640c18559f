// SPDX-License-Identifier: Apache-2.0
// `strict_resume`: the library refuses a resume that answers no interrupt which waits, before
// it writes anything.
import { RunnerError } from './errors.mjs';

// Its name in `configurable`; older versions would ignore the member, and the answer.
const KEY = '__pregel_strict_resume';

// The member, if the run is to be strict; without a resume there is nothing to check.
export function strictness({ strict_resume: isStrict, command }, library) {
    if (!isStrict || (command?.resume ?? null) === null) {
        return {};
    }
    if (!library.UnknownInterruptError) {
        throw new RunnerError('StrictResumeError', `@langchain/langgraph ${library.version} of the application `
            + 'does not know strict_resume: install a newer version, or leave it out');
    }
    return { [KEY]: true };
}
