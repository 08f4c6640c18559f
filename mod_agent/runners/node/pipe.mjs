// SPDX-License-Identifier: Apache-2.0
// The states of descriptor 4, to which two threads write.

export const FREE = 0;
// One of the threads writes.
export const WRITING = 1;
// The main thread has written a part of a line; the rest is on its way to the other thread.
export const PARTLY = 2;
