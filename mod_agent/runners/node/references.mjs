// SPDX-License-Identifier: Apache-2.0
// References to values (PROTOCOL.md, "Records of the library"): {digest} or {digests} of a
// list in the runner, texts and objects in lines; and the writes of tasks, which have one.

export function isEqual(a, b) {
    if (a === null || b === null) {
        return a === b;
    }
    return a.digest === b.digest && a.digests?.length === b.digests?.length
        && (a.digests ?? []).every((digest, i) => digest === b.digests[i]);
}

// A reference as a line has it: the length of the prefix that `before` has too, and the rest.
export function difference(before, ref) {
    if (ref === null || ref.digest !== undefined) {
        return ref === null ? null : ref.digest;
    }
    const old = before?.digests ?? [];
    let keep = 0;
    while (keep < old.length && keep < ref.digests.length && old[keep] === ref.digests[keep]) {
        keep += 1;
    }
    return { list: { keep, items: ref.digests.slice(keep) } };
}

export function parsed(ref) {
    if (ref === null) {
        return null;
    }
    return typeof ref === 'string' ? { digest: ref } : { digests: ref.list.items };
}

// Joins a reference with its continuation in a later part.
export function join(before, ref) {
    if (!before?.list || !ref?.list || ref.list.keep === 0) {
        return ref;
    }
    before.list.items.push(...ref.list.items);
    return before;
}

export function addWrite(writes, write) {
    const last = writes.at(-1);
    if (last && last[0] === write[0] && last[1] === write[1] && write[3]?.list?.keep > 0) {
        last[3] = join(last[3], write[3]);
    } else {
        writes.push(write);
    }
}

// The library's order of writes: by the path of their task, its id, their index.
export function byTask(a, b) {
    for (const [left, right] of [[a[4] ?? '', b[4] ?? ''], [a[0], b[0]], [a[1], b[1]]]) {
        if (left !== right) {
            return left < right ? -1 : 1;
        }
    }
    return 0;
}

export function digestsOf(reference) {
    if (reference === null || reference === undefined) {
        return [];
    }
    return typeof reference === 'string' ? [reference] : reference.list.items;
}
