# SPDX-License-Identifier: Apache-2.0
"""The library's records of one run: what it has put and read, as its saver needs them.

Lines and replies are those of PROTOCOL.md, "Records of the library"; values are
encoded and decoded by `blobs`.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, AsyncIterator, Callable, Mapping, Sequence

from . import jsontext
from .blobs import Blobs
from .breakpoints import Breakpoints
from .checkpoints import UPDATE_ID
from .known import Known
from .output import ARGS_BYTES_MAX, Output
from .recent import keep_newest
from .references import Reference, Stored, decode, digests_of, join
from .repeat import Repeat, ids_of
from .text import cut_text
from .unchanged import Change, Snapshot

Channels = dict[str, Reference]
OnPut = Callable[[str, str, str | None, Mapping[str, Any], Mapping[str, Change | None]], None]

# The most channels of one checkpoint.delta request.
DELTA_CHANNELS_MAX = 64
# The longest task_path; it contains the name of the node, and only orders writes.
TASK_PATH_BYTES_MAX = 1024
# The end of the path of the library's own task that takes the input.
START = " __start__"

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_namespace(ns: str) -> None:
    """Raises NotRenderedError for one with names of nodes that the protocol does not admit."""
    if ns:
        jsontext.name_of(ns, jsontext.NAMESPACE_BYTES_MAX)


def check_id(checkpoint_id: Any) -> None:
    """Raises ValueError: the id may be one that the graph's own code has made."""
    if checkpoint_id is not None and not (isinstance(checkpoint_id, str) and _UUID.fullmatch(checkpoint_id)):
        raise ValueError(f"a checkpoint_id is a UUID in lower case, not {str(checkpoint_id)[:80]!r}")


def delta_groups(ns: str, channels: Sequence[str]) -> list[list[str]]:
    """The channels in requests of legal length: of at most 64 names."""
    # The rest of the request is shorter than 200 bytes.
    most = ARGS_BYTES_MAX - len(jsontext.dumps(ns)) - 200
    groups: list[list[str]] = []
    size = 0
    for name in channels:
        length = len(jsontext.dumps(name)) + 1
        if not groups or len(groups[-1]) == DELTA_CHANNELS_MAX or size + length > most:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += length
    return groups


class Records:
    def __init__(self, output: Output, blobs: Blobs, head: str | None, is_new_thread: bool, repeat: Repeat, is_sync: bool = False) -> None:
        """is_sync: whether a put waits for its commit."""
        self._output = output
        self._is_sync = is_sync
        self._repeat = repeat
        self._blobs = blobs
        self._is_new_thread = is_new_thread
        # The checkpoint that the run was started from.
        self.head = head
        # Of each namespace the channels of the last checkpoint that was put or read.
        self._last: dict[str, tuple[str, Channels]] = {}
        # Which checkpoints were read and put.
        self.known = Known()
        # The task of a root step that has only one: its writes may be sent together with the next checkpoint. Whether it has
        # written.
        self._lone_task: str | None = None
        self._has_written = False
        # The checkpoint from which the run starts, for the get() that follows, and whether it is the last one.
        self._first: tuple[Stored, bool] | None = None
        # Set by the job.
        self.breakpoints: Breakpoints
        # Called while the values are those of the checkpoint: on_put(ns, id, parent, values, changes), with a member of
        # changes for each channel of which the checkpoint has a new version.
        self.on_put: OnPut | None = None
        # Whether the writes of a command were stored; called when they are.
        self.has_command = False
        self.on_command: Callable[[], None] | None = None
        # The root checkpoint whose tasks have written last.
        self.written: str | None = None
        # The checkpoint that hold() has read, and what was decoded of it.
        self._held: Stored | None = None
        self._decoded: dict[Any, Any] = {}
        # The values of the head, as they were read.
        self.head_values: dict[str, Snapshot] = {}

    # --- Writing -------------------------------------------------------------

    async def put(self, ns: str, checkpoint_id: str, parent: str | None, checkpoint: dict[str, Any],
                  metadata: Mapping[str, Any], values: Mapping[str, Any], names: Sequence[str], serde: Any) -> None:
        try:
            check_namespace(ns)
            check_id(parent)
            last = self._last.get(ns)
            channels = dict(last[1]) if last is not None and last[0] == parent else {}
            texts = []
            changes: dict[str, Change | None] = {}
            for name in names:
                if name in values:  # None too: any value in `branch:to:NODE` makes the library start that node.
                    text, channels[name], changes[name] = self._blobs.reference(values[name], serde, channels.get(name))
                else:
                    channels.pop(name, None)
                    text = b"null"
                texts.append((name, text))
            if self.on_put is not None:
                self.on_put(ns, checkpoint_id, parent, values, changes)
            members = [("ns", jsontext.dumps(ns)), ("checkpoint_id", jsontext.dumps(checkpoint_id)),
                       ("parent", jsontext.dumps(parent)), ("checkpoint", jsontext.dumps(checkpoint)),
                       ("metadata", jsontext.dumps(metadata, lenient=True)), ("channels", jsontext.members(texts))]
        except BaseException:
            self.known.fail_puts(ns)
            raise
        await self._send_put(ns, checkpoint_id, members, channels)

    async def _send_put(self, ns: str, checkpoint_id: str, members: list[tuple[str, bytes]], channels: Channels) -> None:
        is_sent = False

        def note_sent() -> None:
            nonlocal is_sent
            is_sent = True

        try:
            if self._is_sync:
                await self._output.send_acknowledged("put", members, note_sent)
            else:
                self._output.send("put", members)
                note_sent()
                await self._output.room()
        except BaseException as error:
            # A node of a run that was cancelled waits no longer; the line is stored all the same, and must be shown.
            if is_sent and isinstance(error, asyncio.CancelledError):
                self._add_put(ns, checkpoint_id, channels)
            else:
                self.known.fail_puts(ns)
            raise
        self._add_put(ns, checkpoint_id, channels)

    def _add_put(self, ns: str, checkpoint_id: str, channels: Channels) -> None:
        self._keep(ns, checkpoint_id, channels)
        self.known.add_put(ns, checkpoint_id)

    async def put_writes(self, ns: str, checkpoint_id: str, task_id: str, task_path: str,
                         writes: Sequence[tuple[int, str, Any]], serde: Any) -> None:
        check_namespace(ns)
        check_id(checkpoint_id)
        texts = [jsontext.array([b"%d" % index, jsontext.dumps(channel), self._blobs.written(value, serde)])
                 for index, channel, value in writes]
        self._output.send("put_writes", [
            ("ns", jsontext.dumps(ns)), ("checkpoint_id", jsontext.dumps(checkpoint_id)),
            ("task_id", jsontext.dumps(task_id)), ("task_path", cut_text(task_path, TASK_PATH_BYTES_MAX)),
            ("writes", jsontext.array(texts))])
        if not ns:
            self.written = checkpoint_id
            if task_id == UPDATE_ID:
                self.has_command = True
                if self.on_command is not None:
                    self.on_command()
        # A node that has ended is not executed again, even if the next one ends the process.
        if not task_path.endswith(START):
            if task_id == self._lone_task and all(index >= 0 for index, _, _ in writes):
                self._has_written = True
            else:
                self._output.hasten()
        await self._output.room()

    def begin_step(self, tasks: Sequence[Mapping[str, Any]], may_wait: bool) -> None:
        """Begins the tasks after a checkpoint of the root graph. may_wait: no other code, as a factory's end, runs after them."""
        if self._has_written and tasks:
            self._output.hasten()
        self._has_written = False
        self._lone_task = tasks[0]["id"] if may_wait and len(tasks) == 1 else None

    # --- Reading -------------------------------------------------------------

    @property
    def start(self) -> Stored | None:
        """The checkpoint from which the run starts, from find_start() until the library reads it."""
        return self._first[0] if self._first is not None else None

    async def find_start(self, checkpoint_id: str, ns: str = "") -> bool:
        """Reads the checkpoint from which the run starts. Returns whether it is the last one of its namespace; else the run is a fork."""
        for asked in (None, checkpoint_id):
            stored = await self.get(ns, asked)
            if stored is not None and stored.tuple["checkpoint_id"] == checkpoint_id:
                self._first = (stored, asked is None)
                # A lost attempt: the server may not have the results of its tasks as a state.
                self.written = checkpoint_id if not ns and self._repeat.has_written(stored.writes) else None
                return asked is None
        raise LookupError("the checkpoint from which the run starts was deleted")

    async def rest_of(self, command: Mapping[str, Any], serde: Any) -> dict[str, Any] | None:
        """The part of the command that is to be given; after find_start()."""
        if self._first is None:
            return dict(command)
        stored, is_last = self._first
        self.has_command = stored.has_command
        asked = list(self._repeat.asked_before(stored.writes)) if isinstance(command.get("resume"), dict) else []
        encoded = await self._blobs.load(digest for write in asked for digest in digests_of(write[3]))
        ids = {write[0]: ids_of(decode(write[3], encoded, serde)) for write in asked}
        return self._repeat.rest(command, stored.has_command, is_last, ids)

    async def hold(self, checkpoint_id: str) -> bool:
        """Reads the last root checkpoint, which is then decoded once, until release(): equal values are the same objects.

        False: it is another one.
        """
        stored = await self.get("", None)
        self._held = stored if stored is not None and stored.tuple["checkpoint_id"] == checkpoint_id else None
        return self._held is not None

    def updated(self) -> set[str]:
        """The channels that commands have written to the checkpoint that is held."""
        return {channel for task_id, _, channel, *_ in (self._held.writes if self._held else ()) if task_id == UPDATE_ID}

    def release(self) -> None:
        self._held = None
        self._decoded.clear()

    async def get(self, ns: str, checkpoint_id: str | None) -> Stored | None:
        first = self._first
        if self._held is not None and not ns and checkpoint_id in (None, self._held.tuple["checkpoint_id"]):
            return self._held
        if first is not None and ns == first[0].tuple["ns"] and not self.known.has_put_any:
            stored, is_last = first
            if checkpoint_id == stored.tuple["checkpoint_id"] or (checkpoint_id is None and is_last):
                self._first = None
                return stored
        if self._is_new_thread and not self.known.has_put_any and checkpoint_id is None:
            return None
        check_id(checkpoint_id)
        args = jsontext.dumps({"ns": ns, "checkpoint_id": checkpoint_id})
        result, cursor = await self._output.request("checkpoint.get", args)
        if result["tuple"] is None:
            return None
        stored = Stored(result["tuple"])
        stored.add(result)
        while cursor is not None:
            result, cursor = await self._output.request("checkpoint.get", args, cursor)
            stored.add(result)
        self._blobs.note(digest for reference in stored.references() for digest in digests_of(reference))
        stored.has_command = self._repeat.is_stored(stored.writes)
        stored.writes = self._repeat.cut(stored.writes)
        return stored

    async def values(self, stored: Stored, serde: Any) -> tuple[dict[str, Any], list[tuple[str, str, Any]]]:
        """The values of the channels, and the writes."""
        if stored is self._held and None in self._decoded:
            return self._decoded[None]
        stored.writes.sort(key=lambda write: (write[4] or "", write[0], write[1]))
        encoded = await self._blobs.load(digest for reference in stored.references() for digest in digests_of(reference))
        values, channels = {}, {}
        # A channel without a version is one that the graph no longer has.
        versions = stored.tuple["checkpoint"].get("channel_versions") or {}
        for name, reference in stored.channels.items():
            if reference is not None and name in versions:
                values[name] = value = decode(reference, encoded, serde)
                is_list = isinstance(reference, dict)
                channels[name] = Reference(digests_of(reference), is_list, Snapshot(value) if is_list else None)
        writes = [(task_id, channel, decode(reference, encoded, serde))
                  for task_id, _, channel, reference, *_ in stored.writes]
        self._repeat.note(stored.tuple["ns"], stored.writes, [value for _, _, value in writes])
        self._remember(stored, values, channels)
        if stored is self._held:
            self._decoded[None] = values, writes
        return values, writes

    def _remember(self, stored: Stored, values: dict[str, Any], channels: Channels) -> None:
        ns, checkpoint_id = stored.tuple["ns"], stored.tuple["checkpoint_id"]
        self.known.add_read(ns, checkpoint_id)
        last = self._last.get(ns)
        # For a checkpoint that this run has put the graph's own objects are kept, not the decoded copies.
        if last is None or last[0] != checkpoint_id:
            self._keep(ns, checkpoint_id, channels)
        if ns == "" and checkpoint_id == self.head and not self.known.has_put_any:
            self.head_values |= {name: channels[name].snapshot or Snapshot(value) for name, value in values.items()}

    def _keep(self, ns: str, checkpoint_id: str, channels: Channels) -> None:
        keep_newest(self._last, ns, (checkpoint_id, channels))

    async def list(self, ns: str | None, before: str | None, filter_: Mapping[str, Any] | None,
                   limit: int | None) -> AsyncIterator[Stored]:
        check_id(before)
        after: Any = None
        left = limit
        while left is None or left > 0:
            args = jsontext.dumps({"ns": ns, "before": before, "filter": filter_, "limit": left, "after": after})
            result, _ = await self._output.request("checkpoint.list", args)
            for found in result["tuples"]:
                # The list has neither channels nor writes. A deleted snapshot is left out.
                stored = await self.get(found["ns"], found["checkpoint_id"])
                if stored is not None:
                    if left is not None:
                        left -= 1
                    yield stored
            after = result["next"]
            if after is None:
                return

    async def delta(self, ns: str, checkpoint_id: str, channels: Sequence[str], serde: Any) -> dict[str, Any]:
        """Of each channel its `writes` since the nearest ancestor with a value, and that as `seed`."""
        check_id(checkpoint_id)
        key = (ns, checkpoint_id, *channels)
        if self._held is not None and key in self._decoded:
            return self._decoded[key]
        seeds: dict[str, Any] = {}
        writes: dict[str, list[Any]] = {name: [] for name in channels}
        args = jsontext.dumps({"ns": ns, "checkpoint_id": checkpoint_id, "channels": list(channels)})
        cursor: str | None = None
        while True:
            result, cursor = await self._output.request("checkpoint.delta", args, cursor)
            for name, part in result.items():
                if "seed" in part:
                    seeds[name] = join(seeds.get(name), part["seed"])
                writes[name] = list(part.get("writes") or []) + writes[name]
            if cursor is None:
                break
        history = await self._decode_delta(seeds, writes, serde)
        if self._held is not None:
            self._decoded[key] = history
        return history

    async def _decode_delta(self, seeds: dict[str, Any], writes: dict[str, list[Any]], serde: Any) -> dict[str, Any]:
        references = [*seeds.values(), *(write[1] for items in writes.values() for write in items)]
        digests = [digest for reference in references for digest in digests_of(reference)]
        self._blobs.note(digests)
        encoded = await self._blobs.load(digests)
        history: dict[str, Any] = {}
        for name, items in writes.items():
            history[name] = {"writes": [(item[0], name, decode(item[1], encoded, serde)) for item in items]}
            if seeds.get(name) is not None:
                history[name]["seed"] = decode(seeds[name], encoded, serde)
        return history
