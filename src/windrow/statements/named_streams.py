"""Statements about named streams: CREATE STREAM in a folder, INSERT INTO one, PUNCTUATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from windrow.algebra.names import piece_of
from windrow.errors import (
    AnalysisError,
    InputError,
    NotSupportedError,
    ParseError,
    Span,
    WindrowError,
    no_column,
)
from windrow.punctuations import Pattern, Values
from windrow.punctuations.lines import Place, line_of
from windrow.punctuations.schemes import EndOfEntity, GrowingKey, Scheme, UniqueKey
from windrow.relation import Relation, as_plan, no_rows
from windrow.relation_kinds import LiveRelation, StreamRelation
from windrow.spark.analysis.evaluated_lengths import nanoseconds_of
from windrow.spark.arrow import arrow_type, contains
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import IntoStream
from windrow.spark.live.session_queries import queries_of
from windrow.spark.logs.columns_taken import TextPlace, columns_taken
from windrow.spark.logs.named_in_session import NamedStreamEntry
from windrow.spark.logs.storable import type_in_spark
from windrow.statements.inserts import live_of, start_insert
from windrow.statements.naming import refuse_taken, remember_named
from windrow.streams import NamedStream, Ordering, Receipt
from windrow.streams.admission.rowtime import Rowtime
from windrow.streams.definition import Definition, region_texts
from windrow.streams.producer import Written
from windrow.syntax.cql_clauses import named_columns
from windrow.syntax.lengths import TIME_UNITS
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText
from windrow.syntax.streams.create_stream import CreateStream, DeclaredColumn
from windrow.syntax.streams.punctuate import PunctuateCondition, parse_conditions, parse_punctuate
from windrow.syntax.tokens import TokenList

__all__ = ["create_named", "insert", "punctuate"]

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "ISTREAM", "DSTREAM", "RSTREAM")


def create_named(gateway: Gateway, catalog: Catalog, tokens: TokenList, create: CreateStream) -> str:
    """Make a named stream, or open the one that is there, and name it; what was done, as a plan.

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
    """What CREATE STREAM says of a named stream."""

    columns: pa.Schema
    rowtime: DeclaredColumn
    ordering: Ordering | None
    idle: float | None
    future: float | None
    retain: float | None
    domain: Sequence[Pattern]
    schemes: Sequence[Scheme]

    def refuse_another(self, tokens: TokenList, create: CreateStream, found: Definition) -> None:
        """Refuse a stream that is there and is not as it is declared."""
        _refuse_another(tokens, create, found, self.columns, self.rowtime, self.ordering)
        known = found.ordering.future
        _refuse_another_length(tokens, create, "FUTURE", self.future, None if known is None else known.micros)
        retained = None if found.retain is None else round(found.retain * 1e6)
        _refuse_another_length(tokens, create, "RETAIN", self.retain, retained)
        _refuse_other_promises(tokens, create, found, self.columns, self.domain, self.schemes)


def _declared(gateway: Gateway, tokens: TokenList, create: CreateStream) -> _Declared:
    (rowtime,) = (column for column in create.columns if column.is_rowtime)
    for column in create.columns:
        if column.part and not column.is_rowtime:
            raise NotSupportedError(
                f"a named stream has no column of {column.part}",
                condition="UNSUPPORTED_CLAUSE",
                sql=tokens.sql,
                span=tokens.span(*column.tokens),
                hint="its log records when rows come and from whom; PUNCTUATE sets bounds",
            )
    ordering, idle = _promises(gateway, tokens, create, rowtime)
    future, retain = (
        None if one is None else float(nanoseconds_of(gateway, tokens, one)) / 1e9
        for one in (create.future, create.retain)
    )
    columns = pa.schema([pa.field(column.name, _type(gateway, tokens, column)) for column in create.columns])
    rows = _StreamRows(gateway, tokens, create.name, columns)
    domain, schemes = rows.domain(create), rows.schemes(create)
    return _Declared(columns, rowtime, ordering, idle, future, retain, domain, schemes)


def refuse_other_stream(gateway: Gateway, catalog: Catalog, tokens: TokenList, create: CreateStream) -> None:
    """Refuse CREATE STREAM IF NOT EXISTS where the session's stream of this name is not as it is declared.

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
            f"stream {create.name} is in the folder {folder}",
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
        hint = "INSERT INTO adds rows; a new stream has a folder of its own"
        raise unsupported_statement(tokens, start, "changing the rows of a stream", hint)


def _refuse_other_promises(
    tokens: TokenList,
    create: CreateStream,
    found: Definition,
    columns: pa.Schema,
    domain: Sequence[Pattern],
    schemes: Sequence[Scheme],
) -> None:
    """Refuse a stream that is there and differs from its declaration; nothing may be left out."""
    words = {"CHECK"} if region_texts(columns, domain) != found.domain else set()
    if tuple(schemes) != found.schemes:
        words |= {"UNIQUE", "GROWING", "WHEN"}
    if words:
        at = next((create.options[word] for word in sorted(words & create.options.keys())), None)
        raise AnalysisError(
            "the stream that is there has other declarations of " + ", ".join(sorted(words)),
            condition="STREAM_DIFFERS",
            sql=tokens.sql,
            span=tokens.span(*at) if at is not None else tokens.span(0, len(tokens)),
            hint="declare it as it is, or name another folder",
        )


def _folder(gateway: Gateway, tokens: TokenList, create: CreateStream) -> Path:
    """The folder that is named, or the one beside Spark's own tables."""
    if create.location is not None:
        return Path(tokens[create.location].text[1:-1])
    warehouse = str(gateway.spark.conf.get("spark.sql.warehouse.dir") or "")
    parts = urlsplit(warehouse)
    if parts.scheme not in ("", "file"):
        raise NotSupportedError(
            f"streams are in folders of a file system, and Spark's tables are in {warehouse}",
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
            f"{found.simpleString().upper()} is no type of a rowtime"
            if column.is_rowtime
            else f"values of type {found.simpleString().upper()} cannot be stored in a stream"
        )
        error = AnalysisError if column.is_rowtime else NotSupportedError
        raise error(
            message,
            condition="INVALID_ROWTIME" if column.is_rowtime else "UNSUPPORTED_TYPE",
            sql=tokens.sql,
            span=tokens.span(*column.tokens),
            hint="rowtimes are TIMESTAMP, DATE or BIGINT with a unit"
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
    """What rows say about later ones, and after how many seconds a silent producer is idle."""
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
    """Refuse a stream that is there and is not as it is declared."""
    declared = Rowtime.of(columns, rowtime.name, rowtime.unit)
    if ordering not in (None, replace(found.ordering, future=None)):
        (word,) = {"ORDERED", "UNORDERED", "LAG"} & create.options.keys()
        raise AnalysisError(
            f"the stream that is there has {_shown(found.ordering)}",
            condition="STREAM_DIFFERS",
            sql=tokens.sql,
            span=tokens.span(*create.options[word]),
            hint="declare it as it is, or name another folder",
        )
    if found.columns.equals(columns) and found.rowtime == declared:
        return
    is_other = not found.columns.equals(columns)
    shown = ", ".join(f"{field.name} {field.type}" for field in found.columns)
    raise AnalysisError(
        f"the stream that is there has columns {shown}"
        if is_other
        else f"the stream that is there has rowtime {found.rowtime.column} in {found.rowtime.unit.lower()}s",
        condition="STREAM_DIFFERS",
        sql=tokens.sql,
        span=tokens.span(create.columns[0].tokens[0], create.columns[-1].tokens[1]),
        hint="declare it as it is, or name another folder",
    )


def _refuse_another_length(
    tokens: TokenList, create: CreateStream, word: str, wanted: float | None, known: int | None
) -> None:
    """Refuse a stream that is there and has another length of this word, in microseconds, than is declared,
    in seconds.
    """
    if wanted is None or known == round(wanted * 1e6):
        return
    declared = f"no {word}" if known is None else f"{word} {known / 1e6:g} SECONDS"
    raise AnalysisError(
        f"the stream that is there has {declared}",
        condition="STREAM_DIFFERS",
        sql=tokens.sql,
        span=tokens.span(*create.options[word]),
        hint="declare it as it is; or make another stream, and insert the rows of this one into it",
    )


def _shown(ordering: Ordering) -> str:
    if ordering.lag is None:
        return "unordered producers"
    return "ordered producers" if ordering.is_promise else f"a lag of {ordering.lag} ticks of its rowtime"


# -- PUNCTUATE -------------------------------------------------------------------------------------


def punctuate(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, start: int, stop: int
) -> Relation | None:
    """Write a bound or a punctuation of the session's producer; what was done, None for other statements.

    Raises
    ------
    WindrowError
        ``UNKNOWN_STREAM``, ``INVALID_INSTANT``, ``UNSUPPORTED_STREAM``, ``UNKNOWN_COLUMN``,
        ``INVALID_VALUE``, ``UNSUPPORTED_TYPE``, ``UNSUPPORTED_PATTERN``.
    """
    said = parse_punctuate(tokens, start, stop)
    if said is None:
        return None
    named = catalog.named.get(said.name.lower())
    if named is None:
        raise _no_named_stream(catalog, tokens, said.name, said.target)
    counts = named.stream.definition.ordering.future is not None
    if said.bound is None:
        columns = named.stream.definition.columns
        pattern = _StreamRows(gateway, tokens, named.name, columns).pattern(said.conditions)
        if gateway.plan_only:
            return as_plan(gateway, f"a punctuation of stream {named.name}: {pattern}")
        written = named.producer().promise(pattern)
        return _said(gateway, written) if counts else no_rows(gateway)
    scale = named.scale
    value = gateway.sql(
        SqlText.of("SELECT CAST(", piece_of(tokens, *said.bound), f" AS {scale.kind}) AS bound")
    )
    ticks = value.selectExpr(f"{scale.of_column('bound', scale.kind, scale.unit)} AS ticks")
    if gateway.plan_only:
        return as_plan(gateway, f"a bound of stream {named.name}")
    with gateway.translated():
        (row,) = ticks.collect()
    try:
        written = named.producer().promise_bound(row["ticks"], strict=said.is_strict)
    except WindrowError as error:
        if error.condition == "INVALID_INSTANT":
            error.sql, error.span = tokens.sql, tokens.span(*said.bound)
        raise
    return _said(gateway, written) if counts else no_rows(gateway)


def _said(gateway: Gateway, written: Written) -> Relation:
    """How many bounds or punctuations of a statement are quarantined, which only FUTURE does."""
    frame = gateway.spark.createDataFrame([(int(written.is_quarantined),)], "quarantined BIGINT")
    return Relation(frame, "done when it was run", gateway)


@dataclass(frozen=True)
class _StreamRows:
    """What a statement says of the rows of a stream, whose values Spark evaluates in the columns' types."""

    gateway: Gateway
    tokens: TokenList
    name: str
    columns: pa.Schema

    def domain(self, create: CreateStream) -> list[Pattern]:
        """What no row matches, by CHECK."""
        if create.check is None:
            return []
        whole = self.pattern(parse_conditions(self.tokens, *create.check))
        return [Pattern.of({name: ~own}) for name, own in whole.columns]

    def schemes(self, create: CreateStream) -> list[Scheme]:
        """The punctuations of rows, by UNIQUE, GROWING and WHEN."""
        found: list[Scheme] = []
        if create.unique:
            found.append(UniqueKey(self._names(create.unique)))
        if create.growing:
            (column,) = self._names(create.growing)
            found.append(GrowingKey(column))
        if create.when is not None:
            when = self.pattern(parse_conditions(self.tokens, *create.when))
            found.append(EndOfEntity(when, self._names(create.ends)))
        return found

    def pattern(self, conditions: tuple[PunctuateCondition, ...]) -> Pattern:
        """The pattern of conditions."""
        found: dict[str, Values] = {}
        for condition in conditions:
            span = self.tokens.span(*condition.target)
            name = self._known(condition.column, span)
            kind = self.columns.field(name).type
            try:
                line_of(kind)
                places = [self._place(operand, name) for operand in condition.operands]
                own = Values.at_places(kind, condition.operator, places)
            except WindrowError as error:
                if error.span is None:
                    error.sql, error.span = self.tokens.sql, span
                raise
            found[name] = found[name] & own if name in found else own
        return Pattern.of(found)

    def _names(self, named: Sequence[tuple[str, Span]]) -> tuple[str, ...]:
        """Columns that punctuations may name."""
        names = tuple(self._known(name, span) for name, span in named)
        for name, (_, span) in zip(names, named, strict=True):
            try:
                line_of(self.columns.field(name).type)
            except WindrowError as error:
                error.sql, error.span = self.tokens.sql, span
                raise
        return names

    def _known(self, column: str, span: Span) -> str:
        known = {name.lower(): name for name in self.columns.names}
        if column.lower() not in known:
            what, names, sql = f"stream {self.name} has", self.columns.names, self.tokens.sql
            raise no_column(what, column, names, condition="UNKNOWN_COLUMN", sql=sql, span=span)
        return str(known[column.lower()])

    def _place(self, operand: Range, name: str) -> Place:
        """The place of a value in the order of a column's."""
        field = self.columns.field(name)
        kind = type_in_spark(field.type)
        piece = piece_of(self.tokens, *operand)
        cast = ("CAST(", piece, f" AS {kind})")
        row = self.gateway.sql(
            SqlText.of("SELECT ", *cast, " AS value, ", *cast, " <=> (", piece, ") AS same")
        )
        with self.gateway.translated():
            table = row.toArrow()
        value = table.column("value")
        if value.null_count or not table.column("same")[0].as_py():
            is_null = bool(value.null_count)
            raise InputError(
                f"a comparison of column {field.name} with NULL is never true"
                if is_null
                else f"{self.tokens.text(*operand)} is no value of column {field.name} ({kind.upper()})",
                condition="INVALID_VALUE",
                sql=self.tokens.sql,
                span=self.tokens.span(*operand),
                hint=f"write {field.name} IS NULL" if is_null else "compare with values of the column's type",
            )
        line = line_of(field.type)
        place = line.places(value.cast(field.type))[0]
        return place if line.is_wide else int(place)


def _no_named_stream(catalog: Catalog, tokens: TokenList, name: str, target: Range) -> WindrowError:
    if name.lower() in catalog.names:
        return NotSupportedError(
            f"{name} is not a named stream: nothing can be added to it",
            condition="UNSUPPORTED_STREAM",
            sql=tokens.sql,
            span=tokens.span(*target),
            hint="CREATE STREAM without FROM makes a named stream",
        )
    return AnalysisError(
        f"there is no stream {name}",
        condition="UNKNOWN_STREAM",
        sqlstate="42P01",
        sql=tokens.sql,
        span=tokens.span(*target),
        hint="make it with CREATE STREAM, or open its folder with CREATE STREAM IF NOT EXISTS",
    )


# -- INSERT ----------------------------------------------------------------------------------------


def insert(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    statement: Range,
    run_query: Callable[[str], Relation],
) -> Relation | None:
    """Insert rows into a stream: how many are in and how many are late; None for other statements.

    Raises
    ------
    WindrowError
        ``UNSUPPORTED_STREAM``, ``UNSUPPORTED_STATEMENT``, ``INSERT_COLUMN_ARITY_MISMATCH``,
        ``UNKNOWN_COLUMN``, ``DUPLICATE_COLUMN``, and those of the query and of
        :meth:`windrow.streams.Producer.insert`.
    """
    start, stop = statement
    if tokens.word(start) != "INSERT" or tokens.word(start + 1) not in ("INTO", "OVERWRITE"):
        return None
    at = start + 2 + (tokens.word(start + 2) == "TABLE")
    if at >= stop or not tokens[at].is_name or tokens[at].name.lower() not in catalog.streams:
        return None
    named = catalog.named.get(tokens[at].name.lower())
    if named is None:
        raise _no_named_stream(catalog, tokens, tokens[at].name, (at, at + 1))
    if tokens.word(start + 1) == "OVERWRITE":
        hint = "INSERT INTO adds rows; a new stream has a folder of its own"
        raise unsupported_statement(tokens, start + 1, "replacing the rows of a stream", hint)
    body, columns = _columns(tokens, at + 1, named)
    if body >= stop or not (tokens.word(body) in _QUERIES or tokens.is_symbol(body, "(")):
        raise ParseError(
            "expected the rows to insert",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(min(body, stop - 1), stop),
            hint="write INSERT INTO s VALUES (…), or INSERT INTO s SELECT …",
        )
    query = live_of(gateway, tokens, body, stop, run_query)
    if isinstance(query, LiveRelation):
        return start_insert(gateway, tokens, query, IntoStream(named.stream, columns), named.name)
    if queries_of(catalog).collected is not None and not query.is_plan:
        hint = "it would be inserted again at each start; insert it once with session.sql"
        raise unsupported_statement(tokens, start, "INSERT of what is there, in a pipeline", hint)
    receipt = _inserted(gateway, tokens, named, columns, query, tokens.span(body, stop))
    if receipt is None:
        return as_plan(gateway, f"insert into stream {named.name}")
    counts = {"inserted": receipt.admitted, "late": receipt.late, "rejected": receipt.rejected}
    if named.stream.definition.ordering.future is not None:
        counts["quarantined"] = receipt.quarantined
    columns_of_counts = ", ".join(f"{name} BIGINT" for name in counts)
    frame = gateway.spark.createDataFrame([tuple(counts.values())], columns_of_counts)
    inserted = Relation(frame, "done when it was run", gateway)
    inserted.written_from = query
    return inserted


def _inserted(
    gateway: Gateway,
    tokens: TokenList,
    named: NamedStreamEntry,
    columns: list[str],
    query: Relation,
    place: Span,
) -> Receipt | None:
    if query.is_plan:
        return None
    rows = query.df
    if isinstance(query, StreamRelation):  # which shows its rowtime first
        own = named.stream.definition.rowtime.column
        taken = columns_taken(named.stream, rows.columns[1:], columns, TextPlace(tokens.sql, place))
        has_own = own in taken
        columns = [*taken] if has_own else [own, *taken]
        numbered = rows.toDF(*(f"c{place}" for place in range(len(rows.columns))))
        rows = numbered.select(*numbered.columns[1:]) if has_own else numbered
    if len(rows.columns) != len(columns):
        raise AnalysisError(
            f"rows have {len(rows.columns)} columns, and are inserted into {len(columns)}:"
            f" {', '.join(columns)}",
            condition="INSERT_COLUMN_ARITY_MISMATCH",
            sqlstate="21S01",
            sql=tokens.sql,
            span=place,
            hint="name the columns that the rows have: INSERT INTO s (a, b) …",
        )
    with gateway.translated():
        typed = named.in_types(rows, columns)
        return None if gateway.plan_only else named.insert(typed.toArrow())


def _columns(tokens: TokenList, at: int, named: NamedStreamEntry) -> tuple[int, list[str]]:
    """Where the rows begin, and the columns that they are for."""
    known = {name.lower(): name for name in named.stream.definition.columns.names}
    if not tokens.is_symbol(at, "(") or tokens.word(at + 1) in _QUERIES or tokens.is_symbol(at + 1, "("):
        return at, list(known.values())
    found: list[str] = []
    for name, span in named_columns(tokens, at, "INSERT INTO"):
        column = known.get(name.lower())
        if column is None or column in found:
            raise AnalysisError(
                f"stream {named.name} has no column {name}"
                if column is None
                else f"column {name} is listed twice",
                condition="UNKNOWN_COLUMN" if column is None else "DUPLICATE_COLUMN",
                sqlstate="42703" if column is None else "42701",
                sql=tokens.sql,
                span=span,
                hint=f"columns are {', '.join(known.values())}",
            )
        found.append(column)
    return tokens.partner[at] + 1, found
