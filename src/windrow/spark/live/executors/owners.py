"""Buckets in the worker that has their state in memory.

Spark gives a bucket to any Python worker of an executor, but the state is in the memory of the worker that
had the bucket last, its *owner*. To read much state from the store takes longer than most micro-batches. So
another worker sends the packets to the owner, which answers with the output and with what is to be stored:
only the task that Spark has started may write to the state store. If there is no owner any more, or it is
busy, or it fails, the worker reads the state from the store, and owns the bucket from then on.

A worker announces the buckets that it owns in a folder of its executor, with the address at which it listens.
Only processes of the same user are answered, and believed.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Protocol

from windrow.errors import WindrowError
from windrow.spark.live.executors.bucket_state import Packet, Store
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.executors.recent import Recent

__all__ = ["QueryPart", "Workers", "workers"]

_LOG = logging.getLogger(__name__)

_PATIENCE = 0.2
"""After how many seconds a busy owner gives a bucket away."""
_SILENCE = 5.0
"""After how many seconds a worker that does not even say whether it has a bucket is not waited for."""


class Advance(Protocol):
    """The computation of a bucket: its output for the packets of a micro-batch."""

    def __call__(
        self, task: BucketTask, store: Store, packets: Sequence[Packet], *, is_first: bool
    ) -> Iterator[Packet]: ...


@dataclass(frozen=True)
class QueryPart:
    """A part of queries: what its buckets do, and those that this process has used last."""

    advance: Advance
    recent: Recent[Any]


def workers(parts: Mapping[str, QueryPart]) -> Workers:
    """The workers of the executor of this task."""
    from pyspark import SparkFiles, TaskContext

    # sockets without a file are Linux's; a worker that Spark does not use again owns nothing
    has_others = sys.platform == "linux" and TaskContext.get() is not None
    if not has_others or not os.getenv("SPARK_REUSE_WORKER"):
        return Workers(None, parts)
    return Workers(Path(SparkFiles.getRootDirectory()).resolve() / "windrow-buckets", parts)


class Workers:
    """The workers of an executor, as one of them sees them.

    Parameters
    ----------
    folder
        Where they announce their buckets; None without other workers.
    parts
        The parts of queries by name.
    """

    def __init__(self, folder: Path | None, parts: Mapping[str, QueryPart]) -> None:
        self._folder, self._parts, self._address = folder, parts, ""
        self._working = threading.Lock()

    def advanced(
        self, name: str, task: BucketTask, store: Store, packets: Sequence[Packet], *, is_first: bool
    ) -> Iterator[Packet]:
        """The output of a bucket for the packets of a micro-batch, as :func:`.bucket.advanced` and
        :func:`.onward.advanced_onward` compute it; `name` is that of the part of the query.
        """
        part, text = self._parts[name], store.text()
        life, version = _state_in(task, text)
        is_own = part.recent.task_of(life, version) is not None
        if text is not None and not is_own:
            request = {"part": name, "life": life, "version": version, "text": text, "is_first": is_first}
            answer = self._answer_of_owner(life, request, packets)
            if answer is not None:
                part.recent.drop(life)
                answer.write_to(store)
                yield from answer.packets
                return
        with self._working:
            yield from part.advance(task, store, packets, is_first=is_first)
        if not is_own and self._folder is not None:
            self._announce(self._folder, _state_in(task, store.text())[0])

    # -- as another worker -----------------------------------------------------------------------------

    def _answer_of_owner(
        self, life: str, request: Mapping[str, Any], packets: Sequence[Packet]
    ) -> _Answer | None:
        """The answer of the worker that owns a bucket; None if it does not answer."""
        if self._folder is None:
            return None
        try:
            address = (self._folder / life).read_text()
            if address == self._address:
                return None
            with Client(address, "AF_UNIX") as connection:
                if not _is_of_this_user(connection):
                    return None
                _send(connection, request, ())
                if not connection.poll(_SILENCE) or not _received(connection)[0]["is_here"]:
                    return None
                _send(connection, [note for note, _ in packets], [data for _, data in packets])
                return _Answer.received(connection)
        except (OSError, EOFError):  # it has ended, or failed
            return None

    # -- as the owner ----------------------------------------------------------------------------------

    def _announce(self, folder: Path, life: str) -> None:
        """Tell the other workers that the state of a bucket is here."""
        try:
            if not self._address:
                self._address = self._listening()
            folder.mkdir(exist_ok=True)
            temporary = folder / f"{life}-{os.getpid()}"
            temporary.write_text(self._address)
            temporary.replace(folder / life)
        except (OSError, RuntimeError):  # no more threads
            _LOG.warning("this worker cannot tell others of its buckets", exc_info=True)
            self._folder = None

    def _listening(self) -> str:
        """The address at which others are answered from now on."""
        address = f"\0windrow-{os.getpid()}-{secrets.token_hex(8)}"
        listener = Listener(address, "AF_UNIX", backlog=16)
        threading.Thread(target=self._serve, args=(listener,), name="windrow-buckets", daemon=True).start()
        return address

    def _serve(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
                name = "windrow-bucket"
                threading.Thread(target=self._answer, args=(connection,), name=name, daemon=True).start()
            except (OSError, RuntimeError):  # no more files, or threads
                _LOG.warning("this worker did not answer another one", exc_info=True)
                time.sleep(1)

    def _answer(self, connection: Connection) -> None:
        """Answer a worker; if the connection ends before, that one reads the state from the store."""
        with connection:
            try:
                if not _is_of_this_user(connection) or not connection.poll(_SILENCE):
                    return
                request, _ = _received(connection)
                if not self._working.acquire(timeout=_PATIENCE):
                    _send(connection, {"is_here": False}, ())
                    return
                try:
                    self._advance_for(connection, request)
                finally:
                    self._working.release()
            except (OSError, EOFError, WindrowError):  # it has ended, or will raise the error itself
                return
            except Exception:
                _LOG.warning("this worker did not advance a bucket for another one", exc_info=True)

    def _advance_for(self, connection: Connection, request: Mapping[str, Any]) -> None:
        part = self._parts[request["part"]]
        task = part.recent.task_of(request["life"], request["version"])
        _send(connection, {"is_here": task is not None}, ())
        if task is None:
            return
        notes, data = _received(connection)
        answer, packets = _Answer(request["text"]), list(zip(notes, data, strict=True))
        answer.packets += part.advance(task, answer, packets, is_first=request["is_first"])
        answer.send(connection)


@dataclass
class _Answer:
    """The output of a bucket, and what is to be stored, in order; also the store while it is computed.

    Attributes
    ----------
    stored_text
        The text of the store.
    packets
        The output.
    stored
        Bytes by name and number; None to delete them.
    """

    stored_text: str
    packets: list[Packet] = field(default_factory=list)
    stored: list[tuple[str, int, bytes | None]] = field(default_factory=list)

    def text(self) -> str:
        return self.stored_text

    def read(self, name: str, number: int) -> bytes:
        raise RuntimeError(f"{name} {number} is to be read, but the state of the bucket is in memory")

    def save(self, text: str) -> None:
        self.stored_text = text

    def write(self, name: str, number: int, data: bytes) -> None:
        self.stored.append((name, number, data))

    def drop(self, name: str, number: int) -> None:
        self.stored.append((name, number, None))

    def write_to(self, store: Store) -> None:
        """Store what is to be stored."""
        for name, number, data in self.stored:
            if data is None:
                store.drop(name, number)
            else:
                store.write(name, number, data)
        store.save(self.stored_text)

    def send(self, connection: Connection) -> None:
        """Send it to the worker that asked."""
        _send(connection, {"text": self.stored_text}, ())
        _send(connection, [one[:2] for one in self.stored], [data for _, _, data in self.stored])
        _send(connection, [note for note, _ in self.packets], [data for _, data in self.packets])

    @classmethod
    def received(cls, connection: Connection) -> _Answer:
        """That which the owner sends."""
        head, _ = _received(connection)
        named, stored = _received(connection)
        notes, packets = _received(connection)
        return cls(
            head["text"],
            list(zip(notes, packets, strict=True)),
            [(name, number, data) for (name, number), data in zip(named, stored, strict=True)],
        )


def _state_in(task: BucketTask, text: str | None) -> tuple[str, str]:
    """The name of the bucket in a stored text, and the version of its state for a task."""
    if text is None:
        return "", ""
    stored = json.loads(text)
    return stored["life"], task.version(stored["token"])


def _is_of_this_user(connection: Connection) -> bool:
    """Whether the process at the other end is of the same user."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        _, user, _ = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(user == os.geteuid())


def _send(connection: Connection, head: object, parts: Sequence[bytes | None]) -> None:
    """Send a value in JSON, and bytes or None."""
    connection.send_bytes(json.dumps([head, [part is not None for part in parts]]).encode())
    for part in parts:
        if part is not None:
            connection.send_bytes(part)


def _received(connection: Connection) -> tuple[Any, list[bytes | None]]:
    """What :func:`_send` sends."""
    head, have_bytes = json.loads(connection.recv_bytes())
    return head, [connection.recv_bytes() if has_bytes else None for has_bytes in have_bytes]
