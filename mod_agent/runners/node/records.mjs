// SPDX-License-Identifier: Apache-2.0
// The records of one run, saved and read back: the library's checkpoints and the
// writes of its tasks. saver.mjs calls it.
import { isDeepStrictEqual } from 'node:util';
import { Blobs } from './blobs.mjs';
import { Breakpoints, plainForm } from './breakpoints.mjs';
import { takeCached } from './cache.mjs';
import { checkFormat, UPDATE_ID } from './checkpoints.mjs';
import { RunnerError } from './errors.mjs';
import { render } from './jsontext.mjs';
import { Known } from './known.mjs';
import { checkChannel, checkId, checkNamespace, deltaGroups } from './names.mjs';
import { keepNewest } from './recent.mjs';
import { Repeat } from './repeat.mjs';
import { addWrite, byTask, difference, isEqual, join, parsed } from './references.mjs';
import { cleanText, cutText } from './text.mjs';

// Writes whose index is negative replace earlier ones of their task.
const INDEXES = new Map([['__error__', -1], ['__scheduled__', -2], ['__interrupt__', -3], ['__resume__', -4]]);
const TASKS = '__pregel_tasks';
// The version of checkpoints that have their tasks in a channel.
const PENDING_SENDS_UNTIL = 4;
const TASK_ID_MAX = 128;
// The longest path of a task; it contains the name of the node, and only orders writes.
const TASK_PATH_BYTES_MAX = 1024;

// Whether a write of checkpoint.get is one of the update or `goto` of a command.
const isUpdateOf = ([taskId, index]) => taskId === UPDATE_ID && index >= 0;

export class Records {
    #output;
    #blobs;
    #threadId;
    #message;
    #isSync;
    #onPut;
    // Records are sent one after another: a blob precedes what names it.
    #turn = Promise.resolve();
    // The commit of the last checkpoint, with durability `sync`.
    #commit;
    // ns -> {id, references: name -> reference} of its last checkpoint.
    #last = new Map();
    // Which checkpoints were read and put.
    known;
    // The values of the root checkpoint that was put last.
    #state;
    // The tuple of the thread's head, until the library asks for it.
    #head;
    #repeat;
    // The checkpoint from which the run starts, if it is the last one.
    #first;
    // The root checkpoint from which the run started, once it was read: {id, values, shown: the values that it was sent with,
    // isComplete: without pending writes of a command}.
    loaded;
    // Called before the library goes on: afterPut(config, checkpoint); may return a promise.
    afterPut = () => {};
    // Called when the update or `goto` of a command was stored; may return a promise.
    afterCommand = () => {};
    // The root checkpoint whose tasks have written last; that of the update or `goto` of a command.
    written;
    // The tasks of that from which the run started whose writes a lost attempt has stored.
    lost = new Set();
    commanded;
    // The channels that commands have written to that checkpoint, or are about to.
    updated = new Set();
    // Whether the library goes on with the writes of the last command in place of those of earlier ones; when it reads the
    // checkpoint it shows all of them.
    hasReplaced = false;
    // Whether that checkpoint has writes of commands of other runs.
    #hasOthers = false;
    // Whether a node has ended, which is not to be executed again.
    hasResults = false;

    // message: `start` or `call`; isSync: whether a put waits for its commit; onPut(ns, id,
    // parent, values): called while the values are those of the checkpoint.
    constructor(output, serde, message, isSync, onPut) {
        this.#onPut = onPut;
        this.#output = output;
        this.#blobs = new Blobs(output, serde, takeCached(message.thread_id));
        this.#threadId = message.thread_id;
        this.#message = message;
        this.#isSync = isSync;
        this.known = new Known(message.durability === 'exit');
        this.#repeat = new Repeat(message);
        this.breakpoints = new Breakpoints(
            message.run_id, this.known, (ns, id) => this.#get(ns, id), (references) => this.#blobs.load(references),
            (tuple) => this.#hasParts(tuple));
    }

    // Reads the thread's head. Returns the id of the checkpoint from which the run
    // starts, if that is another one: a fork. The checkpoint of a subgraph is always named.
    async findStart() {
        const checkpoint = this.#message.checkpoint;
        if (!checkpoint) {
            return undefined;
        }
        checkFormat(checkpoint.format);
        if (this.#message.ns) {
            if (!await this.#get(this.#message.ns, checkpoint.checkpoint_id)) {
                throw new RunnerError('LookupError', 'the checkpoint from which the call starts was deleted');
            }
            return checkpoint.checkpoint_id;
        }
        const head = await this.#get('', null);
        if (head?.tuple.checkpoint_id === checkpoint.checkpoint_id) {
            this.#head = head;
            this.#first = head;
            this.breakpoints.start = head.tuple;
            return undefined;
        }
        return checkpoint.checkpoint_id;
    }

    // The part of the command that is to be given; after findStart().
    async restOf(command) {
        const id = this.#message.checkpoint?.checkpoint_id;
        const start = this.#first ?? (id && await this.#get('', id));
        if (!start) {
            return command;
        }
        const { writes, hasCommand } = start;
        if (writes.some((write) => isUpdateOf(write) && this.#repeat.isOwn(write))) {
            this.commanded = id;
        }
        const asked = this.#repeat.askedBefore(writes);
        return this.#repeat.rest(command, hasCommand, Boolean(this.#first), asked, await this.#blobs.load(asked.map((write) => write[3])));
    }

    // --- Writing -------------------------------------------------------------

    #inTurn(action) {
        const result = this.#turn.then(action);
        this.#turn = result.catch(() => {});
        return result;
    }

    async put(config, checkpoint, metadata, newVersions) {
        let result;
        try {
            result = await this.#put(config, checkpoint, metadata, newVersions);
        } catch (error) {
            this.known.failPuts(config.configurable?.checkpoint_ns ?? '');
            throw error;
        }
        await this.afterPut(config, checkpoint);
        return result;
    }

    async #put(config, checkpoint, metadata, newVersions) {
        const ns = this.#namespaceOf(config);
        checkId(checkpoint.id);
        const parent = config.configurable.checkpoint_id ?? null;
        const place = { configurable: { ...config.configurable, checkpoint_ns: ns, checkpoint_id: checkpoint.id } };
        // With durability `exit` an older library puts once more what it has not gone on from.
        if (this.#message.durability === 'exit' && this.known.hasRead(checkpoint.id)) {
            return place;
        }
        const committed = await this.#inTurn(async () => {
            const { channels, references } = await this.#changes(ns, parent, checkpoint, newVersions);
            const { channel_values: values, ...plain } = plainForm(checkpoint);
            this.#onPut(ns, checkpoint.id, parent, values ?? {});
            const members = {
                ns, checkpoint_id: checkpoint.id, parent, checkpoint: render(plain),
                metadata: render(metadata), channels,
            };
            // Throws for a line that is too long: then nothing was put.
            const { committed: commit } = this.#isSync ? await this.#output.sendAcknowledged('put', members)
                : { committed: this.#output.send('put', members) };
            this.#remember(ns, checkpoint.id, references);
            this.known.addPut(ns, { id: checkpoint.id, parent, step: metadata?.step, source: metadata?.source });
            if (ns === '') {
                this.#state = checkpoint.channel_values;
            }
            if (this.#isSync) {
                this.#commit = commit?.catch(() => {});
                return { promise: commit };
            }
            return { promise: await commit };
        });
        await committed.promise;
        return place;
    }

    // With durability `sync`: resolves when all that was put is committed.
    async committed() {
        if (this.#isSync) {
            await this.#turn;
            await this.#commit;
        }
    }

    // The run is over: no put follows. isKept: no code of the run still executes, so that its
    // values may be kept for the next run of the thread.
    close(isKept) {
        this.known.close();
        if (isKept && this.#state) {
            this.#blobs.keep(this.#threadId, this.#state);
        }
    }

    // Called before the root checkpoint that was put or read last is read back, so that its values are
    // not decoded, which takes more than a millisecond for each message.
    reuse() {
        this.#blobs.reuse(this.#state ?? this.loaded?.values ?? {});
    }

    // The channels to send, and the references of all channels. With a parent that the
    // run has neither read nor put last, as for a copy, all of them are sent.
    async #changes(ns, parent, checkpoint, newVersions) {
        const last = this.#last.get(ns);
        const before = parent === null ? {} : last?.id === parent ? last.references : undefined;
        const references = { ...before };
        const channels = {};
        const values = checkpoint.channel_values ?? {};
        const names = Object.keys(newVersions ?? {});
        for (const name of before ? names : new Set([...names, ...Object.keys(values)])) {
            const ref = values[name] === undefined ? null : await this.#blobs.reference(values[name]);
            checkChannel(name);
            if (before === undefined || !isEqual(before[name] ?? null, ref)) {
                channels[name] = difference(before?.[name], ref);
            }
            references[name] = ref;
        }
        return { channels, references };
    }

    #remember(ns, id, references) {
        keepNewest(this.#last, ns, { id, references });
    }

    async putWrites(config, writes, taskId, taskPath) {
        const ns = this.#namespaceOf(config);
        const id = config.configurable.checkpoint_id;
        if (id === undefined) {
            throw new RunnerError('ValueError', 'writes need a checkpoint_id');
        }
        if (typeof taskId !== 'string' || taskId === '' || taskId.length > TASK_ID_MAX || cleanText(taskId) !== taskId) {
            throw new RunnerError('ValueError', `the id of a task is a text of 1 to ${TASK_ID_MAX} characters`);
        }
        const isUpdate = ns === '' && taskId === UPDATE_ID && writes.some(([channel]) => !INDEXES.has(channel));
        if (isUpdate) {
            this.hasReplaced = this.#hasOthers;
            writes.forEach(([channel]) => this.updated.add(channel));
        }
        await this.#inTurn(async () => {
            if (ns === '') {
                this.written = id;
            }
            this.hasResults ||= ns !== '' || this.known.lastPut('')?.source !== 'input';
            const rows = [];
            for (const [index, [channel, value]] of writes.entries()) {
                checkChannel(channel);
                const ref = await this.#blobs.reference(value);
                rows.push([INDEXES.get(channel) ?? index, channel, difference(undefined, ref)]);
            }
            const sent = this.#output.send('put_writes',
                { ns, checkpoint_id: id, task_id: taskId, task_path: cutText(taskPath ?? '', TASK_PATH_BYTES_MAX), writes: rows });
            if (isUpdate) {
                this.commanded = id;
                return this.afterCommand() ?? sent;
            }
            return sent;
        });
    }

    #namespaceOf(config) {
        const { thread_id: threadId, checkpoint_ns: ns = '', checkpoint_id: id } = config.configurable ?? {};
        checkId(id);
        if (threadId === undefined || threadId !== this.#threadId) {
            throw new RunnerError('ValueError', `a run has the checkpoints of its own thread, not of "${threadId}"`);
        }
        checkNamespace(ns);
        return ns;
    }

    // --- Reading -------------------------------------------------------------

    async getTuple(config) {
        if (config.configurable?.thread_id === undefined) {
            return undefined;
        }
        const ns = this.#namespaceOf(config);
        const id = config.configurable.checkpoint_id;
        if (!id && this.#isNew(ns, config)) {
            return undefined;
        }
        await this.#turn;
        let raw = this.#head;
        this.#head = undefined;
        if (!raw || ns !== '' || (id && id !== raw.tuple.checkpoint_id)) {
            raw = await this.#get(ns, id || null);
        }
        return raw && this.#build(await this.breakpoints.check(raw, config.configurable));
    }

    // Whether the thread can have no checkpoint of the namespace: its task is one
    // of a checkpoint of this run, or the thread had none before.
    #isNew(ns, config) {
        if (this.#last.has(ns) || (ns === '' && this.known.lastPut(''))) {
            return false;
        }
        const root = config.configurable.checkpoint_map?.[''];
        return !this.#message.checkpoint
            || (root !== undefined && this.known.hasPut(root) && ns.split('|').at(-1).includes(':'));
    }

    // A checkpoint as the parts of its reply: {tuple, channels, writes}, or undefined.
    async #get(ns, id) {
        const args = { ns, checkpoint_id: id };
        const found = { tuple: undefined, channels: {}, writes: [] };
        let cursor = null;
        do {
            const reply = await this.#output.request('checkpoint.get', args, cursor);
            const { result } = reply;
            if (cursor === null && !result.tuple) {
                return undefined;
            }
            found.tuple ??= result.tuple;
            Object.entries(result.channels ?? {}).forEach(([name, ref]) => {
                found.channels[name] = join(found.channels[name], ref);
            });
            (result.writes ?? []).forEach((write) => addWrite(found.writes, write));
            cursor = reply.cursor;
        } while (cursor !== null);
        this.#blobs.note([...Object.values(found.channels), ...found.writes.map((write) => write[3])]);
        found.hasCommand = this.#repeat.isStored(found.writes);
        found.writes = this.#repeat.cut(found.writes).sort(byTask);
        return found;
    }

    async #build({ tuple, channels, writes }) {
        const names = Object.keys(channels).filter((name) => channels[name] !== null);
        const references = [...names.map((name) => channels[name]), ...writes.map((write) => write[3])];
        const loaded = await this.#blobs.load(references);
        const values = Object.fromEntries(names.map((name, i) => [name, loaded[i]]));
        const pending = writes.map(([taskId, , channel], i) => [taskId, channel, loaded[names.length + i]]);
        this.#repeat.note(tuple.ns, writes, loaded.slice(names.length));
        this.known.addRead(tuple.checkpoint_id, tuple.metadata?.step);
        if (!this.#last.has(tuple.ns)) {
            this.#remember(tuple.ns, tuple.checkpoint_id, Object.fromEntries(
                Object.entries(channels).map(([name, ref]) => [name, parsed(ref)])));
        }
        if (tuple.ns === '' && tuple.checkpoint_id === this.#message.checkpoint?.checkpoint_id) {
            const updates = writes.filter(isUpdateOf);
            updates.forEach(([, , channel]) => this.updated.add(channel));
            // A lost attempt: the server may not have the results of its tasks as a state.
            if (this.written === undefined) {
                this.lost = this.#repeat.writersOf(writes);
                this.written = this.lost.size > 0 ? tuple.checkpoint_id : undefined;
            }
            this.#hasOthers ||= !updates.every((write) => this.#repeat.isOwn(write));
            this.loaded ??= { id: tuple.checkpoint_id, values: { ...values }, shown: { ...values }, isComplete: updates.length === 0 };
            // With durability `exit` the run that put it has sent it as it is read: with these writes.
            updates.filter((write) => write[5] === tuple.run_id).forEach(([, , channel]) => delete this.loaded.shown[channel]);
        }
        const checkpoint = { ...this.breakpoints.form(tuple), channel_values: values };
        if (checkpoint.v < PENDING_SENDS_UNTIL && tuple.parent) {
            await this.#migrateSends(checkpoint, tuple);
        }
        return {
            config: this.#configOf(tuple.ns, tuple.checkpoint_id),
            checkpoint,
            metadata: tuple.metadata,
            ...(tuple.parent ? { parentConfig: this.#configOf(tuple.ns, tuple.parent) } : {}),
            pendingWrites: pending,
        };
    }

    // Checkpoints of older libraries have their tasks in the writes to their parent.
    async #migrateSends(checkpoint, { ns, parent }) {
        const writes = (await this.#get(ns, parent))?.writes.filter((write) => write[2] === TASKS) ?? [];
        checkpoint.channel_values[TASKS] = await this.#blobs.load(writes.map((write) => write[3]));
        const versions = Object.values(checkpoint.channel_versions);
        const last = versions.reduce((a, b) => (a > b ? a : b), versions[0]);
        checkpoint.channel_versions = { ...checkpoint.channel_versions, [TASKS]: last ?? nextVersion() };
    }

    #configOf(ns, id) {
        return { configurable: { thread_id: this.#threadId, checkpoint_ns: ns, checkpoint_id: id } };
    }

    async* list(config, options = {}) {
        const { before, filter, limit } = options;
        const { checkpoint_ns: ns, checkpoint_id: id } = config.configurable ?? {};
        const beforeId = before?.configurable?.checkpoint_id;
        checkId(beforeId);
        if (config.configurable?.thread_id !== undefined) {
            this.#namespaceOf(config);
        }
        await this.#turn;
        if (id) {
            yield* this.#listOne(config, { beforeId, filter, limit });
            return;
        }
        let left = limit ?? Infinity;
        let after = null;
        do {
            const args = { ns: ns ?? null, before: beforeId ?? null, after,
                filter: filter ? render(filter) : null, limit: Number.isFinite(left) ? left : null };
            const { result } = left > 0 ? await this.#output.request('checkpoint.list', args)
                : { result: { tuples: [], next: null } };
            for (const tuple of result.tuples) {
                const raw = left > 0 ? await this.#get(tuple.ns, tuple.checkpoint_id) : undefined;
                if (raw) {
                    left -= 1;
                    yield await this.#build(raw);
                }
            }
            after = result.next;
        } while (after !== null && left > 0);
    }

    // Whether a checkpoint of a subgraph is a part of the step after one.
    async #hasParts({ ns, checkpoint_id: id, metadata }) {
        const filter = render({ parents: { ...metadata?.parents, [ns]: id } });
        let after = null;
        do {
            const { result } = await this.#output.request('checkpoint.list', { ns: null, before: null, after, filter, limit: 1 });
            if (result.tuples.length > 0) {
                return true;
            }
            after = result.next;
        } while (after !== null);
        return false;
    }

    // The checkpoint that the configuration names, if the list has it.
    async* #listOne(config, { beforeId, filter, limit }) {
        const isListed = limit !== 0 && (!beforeId || config.configurable.checkpoint_id < beforeId);
        const found = isListed ? await this.getTuple(config) : undefined;
        if (found && hasMembers(found.metadata, filter ? render(filter) : {})) {
            yield found;
        }
    }

    // channel -> {writes, seed?}: what the library's getDeltaChannelHistory returns.
    async delta(config, channels) {
        const ns = this.#namespaceOf(config);
        await this.#turn;
        const id = config.configurable.checkpoint_id || (await this.#get(ns, null))?.tuple.checkpoint_id;
        const found = Object.fromEntries(channels.map((name) => [name, { parts: [] }]));
        for (const names of id ? deltaGroups(ns, channels) : []) {
            await this.#readDelta(found, { ns, checkpoint_id: id, channels: names });
        }
        const result = {};
        for (const [name, { seed, parts }] of Object.entries(found)) {
            // Each part precedes the one before it.
            const writes = parts.reverse().flat();
            const values = await this.#blobs.load([...writes.map((write) => write[1]), seed]);
            result[name] = { writes: writes.map(([taskId], i) => [taskId, name, values[i]]) };
            if (seed !== undefined) {
                result[name].seed = values.at(-1);
            }
        }
        return result;
    }

    async #readDelta(found, args) {
        let cursor = null;
        do {
            const reply = await this.#output.request('checkpoint.delta', args, cursor);
            for (const [name, part] of Object.entries(reply.result)) {
                const entry = found[name];
                entry.parts.push(part.writes ?? []);
                if (part.seed !== undefined && part.seed !== null) {
                    entry.seed = join(entry.seed, part.seed);
                }
            }
            cursor = reply.cursor;
        } while (cursor !== null);
    }
}

// Compares the metadata of one checkpoint as checkpoint.list does.
function hasMembers(metadata, members) {
    return Object.entries(members).every(([name, value]) => isDeepStrictEqual(metadata?.[name], value));
}

// The version of a channel that follows: a number in 32 digits, a random part,
// so that two branches of a thread do not share versions.
export function nextVersion(current) {
    const number = typeof current === 'string' ? Number.parseInt(current, 10) : current ?? 0;
    const random = String(Math.floor(Math.random() * 1e16)).padStart(16, '0');
    return `${String(number + 1).padStart(32, '0')}.${random}`;
}
