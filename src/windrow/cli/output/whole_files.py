"""Atomic writes of files: a file is complete, or not there."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windrow.errors import ExecutionError

__all__ = ["atomically", "writing_to"]


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which replaces `path` when the block ends without an error.

    The temporary file is in the same directory, so that the replacement is atomic. A device or a named pipe
    is written to directly.

    Raises
    ------
    ExecutionError
        ``OUTPUT_NOT_WRITTEN``: no permission, no such directory, a full disk.
    """
    # Through a symbolic link, its target is replaced and not the link.
    target = path.resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        with writing_to(path):
            yield target
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with writing_to(path):
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, "a directory")
            # before any work: a missing permission is an error at once
            temporary.touch(exist_ok=False)
            if target.exists():
                temporary.chmod(target.stat().st_mode)
        yield temporary
        with writing_to(path):
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Raise errors of the file system while `path` is written as an error that names it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ExecutionError(
            f"cannot write file {path}: {_reason(error)}",
            condition="OUTPUT_NOT_WRITTEN",
            hint=_hint(path, error),
        ) from None


def _reason(error: OSError) -> str:
    """The system's message; pyarrow's own has further words."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


def _hint(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"create the directory {path.parent} first"
    if isinstance(error, IsADirectoryError):
        return "name a file in it"
    return "choose another --output"
