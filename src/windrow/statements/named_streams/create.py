"""CREATE STREAM in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from windrow.algebra.names import piece_of
from windrow.errors import (
    AnalysisError,
    NotSupportedError,
    WindrowError,
)
from windrow.plan.arrow_types import arrow_type, contains
from windrow.punctuations import Pattern
from windrow.punctuations.schemes import Scheme
from windrow.spark.analysis.evaluated_lengths import nanoseconds_of
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.statements.named_streams.stream_rows import StreamRows
from windrow.statements.naming import refuse_taken, remember_named
from windrow.streams import NamedStream, Ordering
from windrow.streams.admission.rowtime import Rowtime
from windrow.streams.definition import Definition, region_texts
from windrow.syntax.lengths import TIME_UNITS
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.sqltext import SqlText
from windrow.syntax.streams.create_stream import CreateStream, DeclaredColumn
from windrow.syntax.tokens import TokenList

__all__ = ["create_named", "refuse_changed_rows", "refuse_other_stream"]


def create_named(gateway: Gateway, catalog: Catalog, tokens: TokenList, create: CreateStream) -> str:
    """Create a named stream, or open an existing one, and name it; returns what was done, as a plan.

    Raises
    ------
    WindrowError
        ``STREAM_ALREADY_EXISTS``, ``STREAM_DIFFERS``, ``UNSUPPORTED_CLAUSE``, and those of
        :meth:`windrow.streams.NamedStream.create`.
    """
    declared = _declared(gateway, tokens, create)
    columns, rowtime, folder = declared.columns, declared.rowtime, _folder(gateway, tokens, create)
    if gateway.plan_only:
        return f"stream {create.name}({', '.join(columns.names)}) in {folder}"
    refuse_taken(gateway, catalog, tokens, create)
    place = tokens.span(create.location, create.location + 1) if create.location is not None else None
    try:
        if create.if_not_exists and (folder / "stream.json").exists():
            stream = NamedStream.open(folder)
            declared.refuse_another(tokens, create, stream.definition)
        else:
            stream = NamedStream.create(
                folder,
                columns,
                rowtime.name,
                unit=rowtime.unit,
                ordering=declared.ordering,
                idle=declared.idle,
                domain=declared.domain,
                schemes=declared.schemes,
                future=declared.future,
                retain=declared.retain,
            )
    except WindrowError as error:
        if error.span is None:
            error.sql, error.span = (tokens.sql, place) if place is not None else (None, None)
        raise
    remember_named(gateway, catalog, create.name, stream)
    return f"stream {create.name}"


@dataclass(frozen=True)
class _Declared:
    """The parts of CREATE STREAM for a named stream."""

    columns: pa.Schema
    rowtime: DeclaredColumn
    ordering: Ordering | None
    idle: float | None
    future: float | None
    retain: float | None
    domain: Sequence[Pattern]
    schemes: Sequence[Scheme]

    def refuse_another(self, tokens: TokenList, create: CreateStream, found: Definition) -> None:
        """Refuse an existing stream that differs from its declaration."""
        _refuse_another(tokens, create, found, self.columns, self.rowtime, self.ordering)
        known = found.ordering.future
        _refuse_another_length(tokens, create, "FUTURE", self.future, None if known is None else known.micros)
        retained = None if found.retain is None else round(found.retain * 1e6)
        _refuse_another_length(tokens, create, "RETAIN", self.retain, retained)
        _refuse_other_promises(tokens, create, found, self.columns, self.domain, self.schemes)


def _declared(gateway: Gateway, tokens: TokenList, create: CreateStream) -> _Declared:
    (rowtime,) = (column for column in create.columns if column.is_rowtime)
    if "ON LATE" in create.options:
        raise NotSupportedError(
            "ON LATE does not apply to named streams",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(*create.options["ON LATE"]),
            hint="leave it out: the log has its late rows, and start(…, on_late='fail') ends a live query",
        )
    for column in create.columns:
        if column.part and not column.is_rowtime:
            raise NotSupportedError(
                f"a named stream cannot declare a column of {column.part}",
                condition="UNSUPPORTED_CLAUSE",
                sql=tokens.sql,
                span=tokens.span(*column.tokens),
                hint="leave it out: the log records arrival times and producers, and PUNCTUATE sets bounds",
            )
    ordering, idle = _promises(gateway, tokens, create, rowtime)
    future, retain = (
        None if one is None else float(nanoseconds_of(gateway, tokens, one)) / 1e9
        for one in (create.future, create.retain)
    )
    columns = pa.schema([pa.field(column.name, _type(gateway, tokens, column)) for column in create.columns])
    rows = StreamRows(gateway, tokens, create.name, columns)
    domain, schemes = rows.domain(create), rows.schemes(create)
    return _Declared(columns, rowtime, ordering, idle, future, retain, domain, schemes)


def refuse_other_stream(gateway: Gateway, catalog: Catalog, tokens: TokenList, create: CreateStream) -> None:
    """Refuse CREATE STREAM IF NOT EXISTS if the session's stream with this name differs from the declaration.

    Raises
    ------
    AnalysisError
        ``STREAM_DIFFERS``.
    """
    named = catalog.named.get(create.name.lower())
    if named is None:
        return
    _declared(gateway, tokens, create).refuse_another(tokens, create, named.stream.definition)
    folder = named.stream.folder
    if create.location is not None and _folder(gateway, tokens, create).resolve() != folder.resolve():
        raise AnalysisError(
            f"stream {create.name} already exists in folder {folder}",
            condition="STREAM_DIFFERS",
            sql=tokens.sql,
            span=tokens[create.location].span,
            hint=f"choose another name, or DROP STREAM {create.name} first, which leaves its folder alone",
        )


def refuse_changed_rows(catalog: Catalog, tokens: TokenList, start: int) -> None:
    """Refuse DELETE, UPDATE, MERGE and TRUNCATE of a stream.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT``.
    """
    words = {"DELETE": "FROM", "MERGE": "INTO", "TRUNCATE": "TABLE", "UPDATE": None}
    if tokens.word(start) not in words:
        return
    follows = words[tokens.word(start)]
    at = start + 1 + (follows is not None)
    is_one = follows is None or tokens.word(start + 1) == follows
    if is_one and tokens.is_name(at) and tokens[at].name.lower() in catalog.streams:
        hint = "add rows with INSERT INTO, or create a stream in another folder"
        raise unsupported_statement(tokens, start, "changing the rows of a stream", hint)


def _refuse_other_promises(
    tokens: TokenList,
    create: CreateStream,
    found: Definition,
    columns: pa.Schema,
    domain: Sequence[Pattern],
    schemes: Sequence[Scheme],
) -> None:
    """Refuse an existing stream whose punctuations differ from its declaration; none may be left out."""
    words = {"CHECK"} if region_texts(columns, domain) != found.domain else set()
    if tuple(schemes) != found.schemes:
        words |= {"UNIQUE", "GROWING", "WHEN"}
    if words:
        at = next((create.options[word] for word in sorted(words & create.options.keys())), None)
        raise AnalysisError(
            "the existing stream has different declarations of " + ", ".join(sorted(words)),
            condition="STREAM_DIFFERS",
            sql=tokens.sql,
            span=tokens.span(*at) if at is not None else tokens.span(0, len(tokens)),
            hint="use the declaration of the existing stream, or name another folder",
        )


def _folder(gateway: Gateway, tokens: TokenList, create: CreateStream) -> Path:
    """The named folder, or the one beside Spark's own tables."""
    if create.location is not None:
        return Path(tokens[create.location].text[1:-1])
    warehouse = str(gateway.spark.conf.get("spark.sql.warehouse.dir") or "")
    parts = urlsplit(warehouse)
    if parts.scheme not in ("", "file"):
        raise NotSupportedError(
            f"a stream needs a folder of a file system, but Spark's tables are in {warehouse}",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(0, len(tokens)),
            hint="name a folder: LOCATION 'folder'",
        )
    return Path(unquote(parts.path)) / f"{create.name.lower()}.stream"


def _type(gateway: Gateway, tokens: TokenList, column: DeclaredColumn) -> pa.DataType:
    kind = piece_of(tokens, *column.kind) if column.kind is not None else SqlText.of("BIGINT")
    found = gateway.sql(SqlText.of("SELECT CAST(NULL AS ", kind, ")")).schema[0].dataType
    made = arrow_type(found)
    is_collated = contains(found, "collated")
    if made is None or is_collated or (column.is_rowtime and found.simpleString() not in _ROWTIMES):
        message = (
            f"a rowtime cannot be of type {found.simpleString().upper()}"
            if column.is_rowtime
            else f"values of type {found.simpleString().upper()} cannot be stored in a stream"
        )
        error = AnalysisError if column.is_rowtime else NotSupportedError
        raise error(
            message,
            condition="INVALID_ROWTIME" if column.is_rowtime else "UNSUPPORTED_TYPE",
            sql=tokens.sql,
            span=tokens.span(*column.tokens),
            hint="declare TIMESTAMP, DATE, or BIGINT with a unit"
            if column.is_rowtime
            else "declare STRING, and write COLLATE in queries"
            if is_collated
            else "store them as text",
        )
    return made


_ROWTIMES = ("timestamp", "timestamp_ntz", "date", "bigint", "int")


def _promises(
    gateway: Gateway, tokens: TokenList, create: CreateStream, rowtime: DeclaredColumn
) -> tuple[Ordering | None, float | None]:
    """The order that rows follow, and the seconds after which a silent producer is idle."""
    ordering = None
    if "ORDERED" in create.options:
        ordering = Ordering.ordered()
    elif "UNORDERED" in create.options:
        ordering = Ordering.unordered()
    elif create.lag is not None:
        kind = _type(gateway, tokens, rowtime)
        unit = Rowtime.of(pa.schema([pa.field(rowtime.name, kind)]), rowtime.name, rowtime.unit).unit
        ordering = Ordering.lagging(int(nanoseconds_of(gateway, tokens, create.lag) // TIME_UNITS[unit]))
    idle = None if create.idle is None else float(nanoseconds_of(gateway, tokens, create.idle)) / 1e9
    return ordering, idle


def _refuse_another(
    tokens: TokenList,
    create: CreateStream,
    found: Definition,
    columns: pa.Schema,
    rowtime: DeclaredColumn,
    ordering: Ordering | None,
) -> None:
    """Refuse an existing stream whose columns or order differ from its declaration."""
    declared = Rowtime.of(columns, rowtime.name, rowtime.unit)
    if ordering not in (None, replace(found.ordering, future=None)):
        (word,) = {"ORDERED", "UNORDERED", "LAG"} & create.options.keys()
        raise AnalysisError(
            f"the existing stream has {_shown(found.ordering)}",
            condition="STREAM_DIFFERS",
            sql=tokens.sql,
            span=tokens.span(*create.options[word]),
            hint="use the declaration of the existing stream, or name another folder",
        )
    if found.columns.equals(columns) and found.rowtime == declared:
        return
    is_other = not found.columns.equals(columns)
    shown = ", ".join(f"{field.name} {field.type}" for field in found.columns)
    raise AnalysisError(
        f"the existing stream has columns {shown}"
        if is_other
        else f"the existing stream has rowtime {found.rowtime.column} in {found.rowtime.unit.lower()}s",
        condition="STREAM_DIFFERS",
        sql=tokens.sql,
        span=tokens.span(create.columns[0].tokens[0], create.columns[-1].tokens[1]),
        hint="use the declaration of the existing stream, or name another folder",
    )


def _refuse_another_length(
    tokens: TokenList, create: CreateStream, word: str, wanted: float | None, known: int | None
) -> None:
    """Refuse an existing stream whose length for this word, in microseconds, differs from the declared one,
    in seconds.
    """
    if wanted is None or known == round(wanted * 1e6):
        return
    declared = f"no {word}" if known is None else f"{word} {known / 1e6:g} SECONDS"
    raise AnalysisError(
        f"the existing stream has {declared}",
        condition="STREAM_DIFFERS",
        sql=tokens.sql,
        span=tokens.span(*create.options[word]),
        hint="use the existing declaration; or create another stream, and insert the rows of this one into"
        " it",
    )


def _shown(ordering: Ordering) -> str:
    if ordering.lag is None:
        return "unordered producers"
    return "ordered producers" if ordering.is_promise else f"a lag of {ordering.lag} ticks of its rowtime"
