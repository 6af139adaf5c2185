"""Read files as tables: the format of a path, its errors, and the DataFrame.

The names of the files determine the format, or their first bytes, or the caller. Files that this process can
see are checked before Spark reads them: a missing, empty, torn or foreign file is an
:class:`~windrow.errors.InputError` that names it, at the cost of reading a few bytes. Spark checks the files
that only it can see (``s3://…``, a Spark Connect server's disk), and its errors become the same kind of
error.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import InputError, UsageError, did_you_mean
from windrow.spark.errors import MEND_RECORD, local_path, malformed_record
from windrow.spark.jvm.bridge import JavaError
from windrow.spark.scan import ghcn

__all__ = ["FORMATS", "FoundFiles", "look", "of_table", "read_table"]

FORMATS = ("parquet", "csv", "json", "orc", "text", "ghcn-dly", "ghcn-by-year", "delta")
"""The names that `format` may have."""

_BY_SUFFIX = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".dly": "ghcn-dly",
}
# Spark decompresses these formats by the suffix .gz; Parquet and ORC are compressed inside.
_TEXTUAL = frozenset({"csv", "json", "text", "ghcn-dly", "ghcn-by-year"})
_HEAD_BYTES = 4096


def read_table(
    spark: SparkSession,
    path: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002 - the name PySpark's reader gives it
) -> DataFrame:
    """Read one or more files as a table.

    Parameters
    ----------
    spark
        A classic or a Spark Connect session.
    path
        A file, a directory, a glob (``*``, ``?``, ``[ab]``, ``**``, ``{a,b}``), a URI, or several of these,
        all of one format. In a directory, names that start with ``_`` or ``.`` are left out, and
        of its subdirectories only those named ``key=value`` are read (Spark's partitions).
    format
        One of `FORMATS`. By default the suffix determines it (``.parquet``, ``.csv``, ``.json``, ``.jsonl``,
        ``.ndjson``, ``.orc``, ``.dly``; the textual ones also with ``.gz`` after it) or by the content.

    Returns
    -------
    DataFrame
        CSV has a header line, and its column types are inferred, dates and timestamps included. JSON is
        an object a line, or one array of objects. For GHCN-Daily, see :mod:`windrow.spark.scan.ghcn`.

    Raises
    ------
    InputError
        ``PATH_NOT_FOUND``, ``EMPTY_FILE``, ``EMPTY_DIRECTORY``, ``MIXED_FORMATS``, ``TORN_FILE``,
        ``MALFORMED_LINE``, ``MALFORMED_RECORD``, ``NOT_A_PARQUET_FILE``, ``NOT_AN_ORC_FILE``,
        ``NOT_A_CSV_FILE``, ``NOT_A_JSON_FILE``, ``NOT_A_GZIP_FILE``, ``UNREADABLE_FILE``. CSV is not read in
        whole here: a row with too few or too many fields fails the query that reads it.
    UsageError
        ``UNKNOWN_FORMAT``: `format` is none of `FORMATS`, the session lacks it, or no format is named and
        none can be inferred; ``NO_PATH``.
    """
    found = look(path, format=format, master=_master(spark))
    kind, files = found.format, found.files
    label = ", ".join(source.label for source in found.sources)
    targets = [target for source in found.sources for target in source.targets]
    with _spark_failures_as_input_errors(label):
        if kind == "csv" and not files and _server_sees_by_year(spark, found.sources):
            kind = "ghcn-by-year"
        try:
            frame = _load(spark, kind, targets, files)
            # A Connect session reports errors only when the schema is requested.
            columns = frame.columns
        except (PySparkException, JavaError) as error:
            if kind == "json" and "[MALFORMED_RECORD" in str(error):
                label = _file_of_malformed_json(spark, targets, _spans_lines(files)) or label
                raise _malformed(label) from None
            raise
    if not columns:
        raise _empty(f"{label} contains no data to infer columns from")
    return frame


def look(
    path: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002 - as `read_table` has it
    master: str = "local",
) -> FoundFiles:
    """Check the paths without Spark, as far as this process can see them.

    Parameters
    ----------
    path, format
        As in :func:`read_table`.
    master
        The Spark master; ``sc://…`` for Spark Connect.

    Raises
    ------
    InputError, UsageError
        As :func:`read_table`, for files that this process can see.
    """
    if format is not None and format not in FORMATS:
        raise _unknown_format(f"unknown format {format}", did_you_mean(format, FORMATS))
    paths = [path] if isinstance(path, str | Path) else list(path)
    if not paths:
        raise UsageError("the list of paths is empty", condition="NO_PATH", hint="name at least one file")
    sources = tuple(_source(master, str(each), format) for each in paths)
    found = FoundFiles(sources, _common_format(sources))
    for file in found.files:
        _check(file, found.format)
    return found


@contextmanager
def of_table(name: str) -> Iterator[None]:
    """Add the table's name to errors of reading its files."""
    try:
        yield
    except InputError as error:
        error.message = f"table {name}: {error.message}"
        raise


@dataclass(frozen=True, slots=True)
class _File:
    """A data file that this process can see: its path, its size in bytes, its first decompressed bytes."""

    path: Path
    size: int
    head: bytes


@dataclass(frozen=True, slots=True)
class _Source:
    """One path of the caller: its text, its paths for Spark, and its files.

    `formats` has an example for each format found; `files` is empty if only Spark can see them.
    """

    label: str
    targets: tuple[str, ...]
    files: tuple[_File, ...]
    formats: dict[str, str]


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files of a table, all of one format."""

    sources: tuple[_Source, ...]
    format: str

    @property
    def files(self) -> list[_File]:
        """The data files that this process can see."""
        return [file for source in self.sources for file in source.files]


def _master(spark: SparkSession) -> str:
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return "sc://"
    return str(spark.conf.get("spark.master", "local"))


def _source(master: str, text: str, named: str | None) -> _Source:
    """Find the files of a path, and their format unless it is named."""
    visible = not master.startswith("sc://") and _is_local(text)
    found = _matches(text) if visible else []
    if not found:
        if visible and master.startswith("local"):
            raise _not_found(text)
        return _Source(text, (text,), (), {named or _format_by_name(text): text})
    # The scheme prevents Spark from looking on a cluster's default file system.
    targets = tuple("file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path)) for path in found)
    if named == "delta" or all((path / "_delta_log").is_dir() for path in found):
        return _Source(text, targets, (), {"delta": text})
    files = [file for path in found for file in _data_files(path)]
    # Spark writes a part without rows as a textual file without bytes.
    filled = [file for file in files if file.size or _suffix_format(file.path.name) in ("parquet", "orc")]
    if not filled:
        raise _empty(
            f"file {files[0].path} is empty" if len(files) == 1 else f"all files of {text} are empty"
        )
    formats = {named or _format_of(file): str(file.path) for file in filled}
    return _Source(text, targets, tuple(filled), formats)


def _is_local(text: str) -> bool:
    """Whether the path is on a local disk."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):/", text)
    return scheme is None or scheme[1].lower() == "file"


def _matches(text: str) -> list[Path]:
    """The files and directories that a local path or glob names, in order of name."""
    path = Path(re.sub(r"^file:(//)?(?=/)", "", text, flags=re.IGNORECASE)).expanduser().absolute()
    if path.exists():
        # Spark resolves `..` textually, which is wrong behind a symbolic link.
        return [path.parent.resolve() / path.name]
    found = {
        match
        for pattern in _braces_expanded(str(path.relative_to(path.anchor)))
        for match in Path(path.anchor).glob(pattern)
        if not match.name.startswith((".", "_"))
    }
    return sorted(found)


def _braces_expanded(pattern: str) -> list[str]:
    """Expand ``{a,b}`` in a pattern, which Python's globs do not support."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        return [pattern]
    return [
        expanded
        for choice in braces[1].split(",")
        for expanded in _braces_expanded(pattern[: braces.start()] + choice + pattern[braces.end() :])
    ]


def _data_files(path: Path) -> Iterator[_File]:
    """The file, or the files of the directory that Spark would read."""
    if not path.is_dir():
        yield _opened(path)
        return
    paths = list(_parts(path))
    if not paths:
        raise InputError(
            f"directory {path} contains no data files",
            condition="EMPTY_DIRECTORY",
            hint="check the path: a live query writes no files before it emits rows, and only subdirectories"
            f" named key=value are read; for others, write {path}/*/*",
        )
    yield from map(_opened, paths)


def _parts(directory: Path) -> Iterator[Path]:
    for child in sorted(directory.iterdir()):
        if child.is_dir() and "=" in child.name:
            yield from _parts(child)
        elif child.is_file() and not child.name.startswith((".", "_")):
            yield child


def _opened(path: Path) -> _File:
    """Read a file's head, through its compression."""
    try:
        size = path.stat().st_size
        with gzip.open(path) if path.suffix.lower() == ".gz" and size else path.open("rb") as opened:
            return _File(path, size, opened.read(_HEAD_BYTES))
    except gzip.BadGzipFile as error:
        raise InputError(
            f"file {path} is not compressed with gzip, although its name ends in .gz",
            condition="NOT_A_GZIP_FILE",
            hint="rename it without .gz",
        ) from error
    except (EOFError, zlib.error) as error:
        raise _torn(path, "ends inside its compressed data") from error
    except OSError as error:
        raise InputError(f"cannot read file {path}: {error.strerror}", condition="UNREADABLE_FILE") from error


def _format_of(file: _File) -> str:
    """The format by suffix, or by content if the suffix is unknown."""
    first_line = file.head.split(b"\n", 1)[0]
    named = _suffix_format(file.path.name)
    if named in ("csv", None) and ghcn.BY_YEAR.matches(first_line):
        return "ghcn-by-year"
    if named is not None:
        return named
    if ghcn.DLY.matches(first_line):
        return "ghcn-dly"
    # Spark decompresses neither of these as a whole.
    if file.path.suffix.lower() != ".gz":
        if file.head.startswith(b"PAR1"):
            return "parquet"
        if file.head.startswith(b"ORC"):
            return "orc"
    raise _unknown_format(f"cannot infer the format of file {file.path} from its name")


def _format_by_name(text: str) -> str:
    """The format of a path that only Spark can see."""
    named = _suffix_format(PurePath(text).name)
    if named is None:
        raise _unknown_format(f"cannot infer the format of {text} from its name")
    return named


def _suffix_format(name: str) -> str | None:
    path = PurePath(name.lower())
    if path.suffix != ".gz":
        return _BY_SUFFIX.get(path.suffix)
    inner = _BY_SUFFIX.get(PurePath(path.stem).suffix)
    return inner if inner in _TEXTUAL else None


def _common_format(sources: Sequence[_Source]) -> str:
    """The one format of all sources."""
    formats = {kind: example for source in sources for kind, example in source.formats.items()}
    if len(formats) == 1:
        return next(iter(formats))
    found = ", ".join(f"{kind} ({example})" for kind, example in sorted(formats.items()))
    raise InputError(
        f"files of several formats cannot be one table: {found}",
        condition="MIXED_FORMATS",
        hint="choose files of one format with a glob, such as 'directory/*.parquet'",
    )


def _check(file: _File, kind: str) -> None:
    """Refuse a file that is empty, torn or of another format, as far as its first and last bytes show it."""
    path, head = file.path, file.head
    if not head:
        raise _empty(f"file {path} is empty")
    if kind == "parquet":
        # PARE marks a file with an encrypted footer.
        if head[:4] not in (b"PAR1", b"PARE"):
            raise _foreign(path, "NOT_A_PARQUET_FILE", "a Parquet file")
        with path.open("rb") as opened:
            opened.seek(max(0, file.size - 4))
            # The magic at both ends, and the length of the footer before the last.
            if file.size < 12 or opened.read() != head[:4]:
                raise _torn(path, "has the start of a Parquet file but not its end")
    elif kind == "orc" and head[:3] != b"ORC":
        raise _foreign(path, "NOT_AN_ORC_FILE", "an ORC file")
    elif kind == "csv" and b"\0" in head:
        raise _foreign(path, "NOT_A_CSV_FILE", "a CSV file in UTF-8")
    elif kind == "json" and not re.match(rb"(\xef\xbb\xbf)?\s*([\[{]|$)", head):
        raise _foreign(path, "NOT_A_JSON_FILE", "a JSON file of objects")


def _server_sees_by_year(spark: SparkSession, sources: Sequence[_Source]) -> bool:
    """Whether CSV that only Spark can see is GHCN-Daily by year; Spark checks if the names suggest it."""
    if not all(re.fullmatch(r"[12][0-9]{3}\.csv(\.gz)?", PurePath(source.label).name) for source in sources):
        return False
    first = spark.read.text([source.label for source in sources]).head(1)
    return bool(first) and ghcn.BY_YEAR.matches(str(first[0]["value"]).encode())


def _load(spark: SparkSession, kind: str, targets: list[str], files: Sequence[_File]) -> DataFrame:
    reader = spark.read
    if kind == "csv":
        # Without these, Spark fills a torn row with NULLs, skips torn rows of a query that reads some of the
        # columns, and reads the columns of a second file in the order of the first one's header.
        # A quote within quotes is doubled, as RFC 4180 and our own output have it.
        strict = {"mode": "FAILFAST", "columnPruning": "false", "enforceSchema": "false", "escape": '"'}
        return reader.options(header=True, inferSchema=True, **strict).csv(targets)
    if kind == "json":
        return reader.options(mode="FAILFAST", multiLine=_spans_lines(files)).json(targets)
    if kind == "ghcn-dly":
        return ghcn.read(spark, ghcn.DLY, targets, [file.path for file in files])
    if kind == "ghcn-by-year":
        return ghcn.read(spark, ghcn.BY_YEAR, targets, [file.path for file in files])
    # Delta takes one path and no list.
    return reader.format(kind).load(targets if len(targets) > 1 else targets[0])


def _spans_lines(files: Sequence[_File]) -> bool:
    """Whether the JSON is an array, or an object over several lines, instead of an object a line."""
    whole = {file.head.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n")[0].strip() for file in files}
    spanning = {line.startswith(b"[") or line == b"{" for line in whole}
    if len(spanning) > 1:
        raise InputError(
            "some of the files contain a JSON array, others one JSON object per line",
            condition="MIXED_FORMATS",
            hint="read them as two tables",
        )
    return True in spanning


@contextmanager
def _spark_failures_as_input_errors(label: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, JavaError) as error:
        raise _input_error(label, str(error)) from None


def _input_error(label: str, text: str) -> InputError | UsageError:
    """The error for Spark's message, without the frames of its stack.

    >>> raised = _input_error("a.orc", "[PATH_NOT_FOUND] Path does not exist: x. SQLSTATE: 42K03 at org.…")
    >>> raised.condition, raised.message
    ('PATH_NOT_FOUND', 'Spark cannot read a.orc: Path does not exist: x.')
    """
    if (malformed := malformed_record(text)) is not None:
        return malformed
    parsed = re.search(r"\[([A-Z][A-Z0-9_]*)[A-Z0-9_.]*\]\s*(.*?)\s*(?:SQLSTATE: (\w{5})|$)", text, re.DOTALL)
    condition, detail, state = (parsed[1], parsed[2], parsed[3]) if parsed else ("", text, None)
    detail = " ".join(re.split(r"\n\s*at |\n\nJVM stacktrace", detail)[0].split())
    # What Py4J and Java put before an error that Spark has no condition for.
    detail = re.sub(r"^An error occurred while calling \S+ : (?:[\w$]+\.)*([\w$]+: )?", "", detail)
    message = f"Spark cannot read {label}: {detail}"
    if condition == "DATA_SOURCE_NOT_FOUND":
        return UsageError(
            message, condition="UNKNOWN_FORMAT", hint="start Spark with a package that reads this format"
        )
    if condition == "UNABLE_TO_INFER_SCHEMA":
        return _empty(f"{label} contains no data to infer columns from")
    if condition.startswith("MALFORMED_RECORD"):
        return _malformed(label)
    if condition == "FAILED_READ_FILE" or "EOFException" in text or "org.apache.orc" in text:
        return InputError(
            message, condition="TORN_FILE", hint="fetch the file again: it may be cut short or damaged"
        )
    return InputError(message, condition=condition or "UNREADABLE_FILE", sqlstate=state)


def _malformed(label: str) -> InputError:
    return InputError(
        f"{label} has a record that is malformed or cut short",
        condition="MALFORMED_RECORD",
        hint=MEND_RECORD,
    )


def _file_of_malformed_json(spark: SparkSession, targets: list[str], spans_lines: bool) -> str | None:
    """The first file with malformed JSON, which Spark does not name when it infers the columns."""
    corrupt = "__corrupt"
    reader = spark.read.schema(f"{corrupt} STRING, __other STRING")
    records = reader.options(multiLine=spans_lines, columnNameOfCorruptRecord=corrupt).json(targets)
    # Spark refuses to read the column of corrupt records alone.
    found = records.where(f"{corrupt} IS NOT NULL").select("_metadata.file_path", corrupt, "__other").head(1)
    return f"file {local_path(found[0]['file_path'])}" if found else None


def _not_found(text: str) -> InputError:
    """The error for a path that does not exist, with a similar name as a hint."""
    if re.search(r"[*?\[{]", text):
        return InputError(f"no file matches {text}", condition="PATH_NOT_FOUND", sqlstate="42K03")
    missing = Path(re.sub(r"^file:(//)?(?=/)", "", text)).expanduser().absolute()
    while not missing.parent.exists():
        missing = missing.parent
    neighbours = [child.name for child in missing.parent.iterdir()] if missing.parent.is_dir() else []
    return InputError(
        f"path {text} does not exist",
        condition="PATH_NOT_FOUND",
        hint=did_you_mean(missing.name, neighbours),
        sqlstate="42K03",
    )


def _unknown_format(message: str, hint: str | None = None) -> UsageError:
    return UsageError(
        message, condition="UNKNOWN_FORMAT", hint=hint or f"name its format: one of {', '.join(FORMATS)}"
    )


def _empty(message: str) -> InputError:
    return InputError(message, condition="EMPTY_FILE")


def _torn(path: Path, what: str) -> InputError:
    return InputError(
        f"file {path} {what}", condition="TORN_FILE", hint="fetch or write the file again: it is cut short"
    )


def _foreign(path: Path, condition: str, what: str) -> InputError:
    return InputError(
        f"file {path} is not {what}",
        condition=condition,
        hint=f"name its format: one of {', '.join(FORMATS)}",
    )
