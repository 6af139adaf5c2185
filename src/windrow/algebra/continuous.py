"""The algebra of continuous queries: time-varying relations, and the streams derived from them.

The text of a query stays the user's. Windows of streams and time-varying views in its FROM become inputs:
keys in the text, to be replaced by those relations at an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from windrow.algebra.names import piece_of
from windrow.errors import AnalysisError, Span, did_you_mean
from windrow.syntax.canonical_text import canonical_place
from windrow.syntax.cql_clauses import (
    TO_STREAM,
    StreamWindowClause,
    ToStream,
    alias_after,
    begins_relation,
    is_changelog,
    named_columns,
    parse_stream_window,
    parse_to_stream,
    refuse_alias_before,
    window_at,
)
from windrow.syntax.mistakes import misplaced_to_stream
from windrow.syntax.nodes import Cte, Range
from windrow.syntax.query_parts import used_ctes, visible_ctes, with_items
from windrow.syntax.sqltext import RelationText, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = [
    "CHANGELOG",
    "ChangelogOf",
    "Continuous",
    "Input",
    "NamedRelation",
    "Query",
    "Reader",
    "StreamQuery",
    "WindowedStream",
]

CHANGELOG = "CHANGELOG"
"""The kind of a stream of changes."""


@dataclass(frozen=True)
class WindowedStream:
    """A window of a stream: of the one with a name, or of the output of a query.

    `partition_by`, `on` and `distance` are the expressions in the bracket.
    """

    key: str
    source: str | StreamQuery
    window: StreamWindowClause
    partition_by: tuple[SqlText, ...]
    on: SqlText | None
    distance: SqlText | None
    span: Span

    @property
    def is_bare(self) -> bool:
        """Whether no window is written: its rows as they arrive, as of ``[NOW]``."""
        return self.window.tokens[0] == self.window.tokens[1]

    @property
    def is_each_change(self) -> bool:
        """Whether it has each change of CHANGELOG OF at its instant alone, whatever the unit."""
        is_of_changes = isinstance(self.source, StreamQuery) and self.source.kind == CHANGELOG
        return is_of_changes and self.is_bare and self.window.is_now


@dataclass(frozen=True)
class NamedRelation:
    """A view over a time-varying relation."""

    key: str
    name: str
    span: Span


@dataclass(frozen=True)
class ChangelogOf:
    """``CHANGELOG OF (query) [KEY (columns)]`` without a window: a static table."""

    key: str
    query: Query
    key_columns: tuple[tuple[str, Span], ...]
    span: Span

    @property
    def stream(self) -> StreamQuery:
        """The changes as a stream."""
        return StreamQuery(CHANGELOG, self.query, self.key_columns, self.span)

    def windowed(self, window: StreamWindowClause) -> WindowedStream:
        """A window of the changes."""
        return WindowedStream(self.key, self.stream, window, (), None, None, self.span)


Input = WindowedStream | NamedRelation | ChangelogOf
_SET_OPERATORS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")


@dataclass(frozen=True)
class Query:
    """A relation: the SQL that computes it at any instant from its inputs, whose keys are in the text.

    `tokens` are the query's. For ``SELECT ISTREAM(a, b) FROM …`` they are `items`, the range in the brackets,
    and the `rest` after it.
    """

    sql: str
    text: SqlText
    inputs: tuple[Input, ...]
    tokens: Range
    span: Span
    items: Range | None = None
    rest: Range = (0, 0)

    @property
    def is_temporal(self) -> bool:
        """Whether any of the inputs is time-varying."""
        return any(not isinstance(item, ChangelogOf) for item in self.inputs)


@dataclass(frozen=True)
class StreamQuery:
    """ISTREAM, DSTREAM or RSTREAM of a relation; rows differ by the columns `using`, or by all.

    Or its changes as rows, `CHANGELOG`; `using` are then the columns of KEY. `names` are those of its columns
    in a WITH list.
    """

    kind: str
    query: Query
    using: tuple[tuple[str, Span], ...]
    span: Span
    names: tuple[tuple[str, Span], ...] = ()


Continuous = Query | StreamQuery


@dataclass
class Reader:
    """Reads a text in which some names are streams, and others time-varying relations.

    Names are matched as in Spark, regardless of case.

    `selects` are the positions of the SELECTs that return a stream (SELECT STREAM), also in FROM and WITH. In
    them a stream without a window is its rows as they arrive. `declared` are the streams that the statement
    itself declares, by the positions of their names, or of the brackets around their queries. `tables` are
    streams that are tables too.
    """

    tokens: TokenList
    streams: frozenset[str]
    relations: frozenset[str]
    inputs: dict[Range, Input] = field(default_factory=dict)
    selects: frozenset[int] = frozenset()
    declared: Mapping[int, str] = field(default_factory=dict)
    tables: frozenset[str] = frozenset()
    _as_they_come: set[Range] = field(default_factory=set)

    def read(self, start: int, stop: int) -> Continuous:
        """The query in a range of tokens, with the named queries that it can see."""
        if self._selects_stream(start, stop):
            self._as_they_come.add((start, stop))
            query = self.query(start, stop)
            return self._selected(query) if query.inputs else query
        to_stream = parse_to_stream(self.tokens, self.after_with(start, stop), stop)
        return self.query(start, stop) if to_stream is None else self.stream(to_stream)

    def query(self, start: int, stop: int) -> Query:
        """A relation."""
        return self._query(SqlText(), self.text(start, stop), start, stop)

    def reads_unused(self) -> bool:
        """Whether any named query of the text is time-varying, including unused ones."""
        for at in self.tokens.places("WITH"):
            for cte in with_items(self.tokens, at):
                self.read(*cte.body)
        return bool(self.inputs)

    def _selects_stream(self, start: int, stop: int) -> bool:
        """Whether a query is SELECT STREAM, after a WITH list and inside brackets."""
        tokens, at = self.tokens, self.after_with(start, stop)
        while at < stop and tokens.is_symbol(at, "("):
            close = tokens.partner[at]
            if close + 1 < stop and tokens.word(close + 1) not in _SET_OPERATORS:
                return False
            at = self.after_with(at + 1, close)
        return at < stop and tokens[at].start in self.selects

    def _selected(self, query: Query) -> StreamQuery:
        """SELECT STREAM: the rows of streams without windows as they arrive; of other inputs, the inserted
        rows.
        """
        if not query.is_temporal:
            hint = "leave STREAM out: CHANGELOG OF is a table of changes"
            raise _not_temporal(self.tokens, query.span, hint)
        bare = any(isinstance(item, WindowedStream) and item.is_bare for item in query.inputs)
        return StreamQuery("RSTREAM" if bare else "ISTREAM", query, (), query.span)

    def _stream_of(self, start: int, stop: int) -> StreamQuery | None:
        """The stream of a query in FROM or WITH, by ISTREAM and its like or SELECT STREAM; None for
        others.
        """
        while self.tokens.is_symbol(start, "(") and self.tokens.partner[start] == stop - 1:
            start, stop = start + 1, stop - 1
        if is_changelog(self.tokens, start):
            return self._changelog(start)[0].stream
        found = parse_to_stream(self.tokens, start, stop)
        if found is not None:
            return self.stream(found)
        if not self._selects_stream(start, stop):
            return None
        self._as_they_come.add((start, stop))
        prefix, text = self.with_list(start, (start, stop)), self.text(start, stop)
        if prefix.parts and self.tokens.word(start) == "WITH":
            text = SqlText.of("SELECT * FROM (", text, ")")
        query = self._query(prefix, text, start, stop)
        return self._selected(query) if query.inputs else None

    def _named_stream(self, cte: Cte) -> StreamQuery | None:
        """The stream of a query of WITH, with the names of its columns there."""
        found, columns = self._stream_of(*cte.body), cte.item[0] + 1
        if found is None or not self.tokens.is_symbol(columns, "("):
            return found
        return replace(found, names=named_columns(self.tokens, columns, f"WITH {cte.name}"))

    def stream(self, to_stream: ToStream) -> StreamQuery:
        """A stream derived from a relation."""
        tokens, (start, stop) = self.tokens, to_stream.query
        prefix = self.with_list(start, to_stream.tokens)
        if to_stream.rest is not None:
            text = SqlText.of("SELECT ", self.text(start, stop), " ", self.text(*to_stream.rest))
            query = replace(
                self._query(prefix, text, *to_stream.tokens), items=(start, stop), rest=to_stream.rest
            )
        elif stop - start == 1 and tokens[start].is_name:
            self._refuse_stream(start, f"{to_stream.kind} takes a relation")
            text = SqlText.of("SELECT * FROM ", self._relation_named(start))
            query = self._query(prefix, text, start, stop)
        else:
            if start >= stop or parse_to_stream(tokens, start, stop) is not None:
                span = tokens.span(start, stop)
                raise _stream_provided(tokens, span, f"{to_stream.kind} takes a relation")
            query = self._query(prefix, self.text(start, stop), start, stop)
        self.refuse_bare_streams(query)
        if not query.is_temporal:
            raise _not_temporal(tokens, query.span)
        return StreamQuery(to_stream.kind, query, to_stream.using, tokens.span(*to_stream.tokens))

    def _query(self, prefix: SqlText, body: SqlText, start: int, stop: int) -> Query:
        text = SqlText.of(prefix, body)
        found = {item.key: item for item in self.inputs.values()}
        inputs = tuple(found[key] for key in text.relations())
        return Query(self.tokens.sql, text, inputs, (start, stop), self.tokens.span(start, stop))

    # -- text ----------------------------------------------------------------------------------------

    def text(self, start: int, stop: int) -> SqlText:
        """The user's text in which inputs are keys, without the named queries that are streams."""
        parts: list[SqlText] = []
        at = index = start
        while index < stop:
            found = self._input(index, stop) or self._with(index)
            if found is None:
                index += 1
                continue
            text, after = found
            parts += [self._piece(at, index), text]
            at = index = after
        parts.append(self._piece(at, stop))
        return SqlText.of(*parts)

    def with_list(self, position: int, body: Range, keep: Callable[[Cte], bool] = lambda _: True) -> SqlText:
        """WITH and the queries in `keep` that are visible at a position and used in the body, except
        streams.
        """
        seen = {cte.name.lower(): cte for cte in visible_ctes(self.tokens, position)}
        used = used_ctes(self.tokens, list(seen.values()), body)
        return self._with_text([cte for cte in used if not self._is_stream(cte) and keep(cte)])

    def _with_text(self, ctes: list[Cte]) -> SqlText:
        if not ctes:
            return SqlText()
        word = "WITH RECURSIVE " if any(cte.recursive for cte in ctes) else "WITH "
        items = [SqlText.of(self.text(*cte.item)) for cte in ctes]
        return SqlText.of(word, SqlText.join(", ", items), " ")

    def _with(self, index: int) -> tuple[SqlText, int] | None:
        """A WITH list without streams and unused queries, and the token after it."""
        tokens = self.tokens
        if tokens.word(index) != "WITH" or tokens.is_symbol(index - 1, "."):
            return None
        ctes = with_items(tokens, index)
        if not ctes:
            return None
        after, parent = ctes[-1].item[1], tokens.parent[index]
        stop = tokens.partner[parent] if parent >= 0 else len(tokens)
        remaining = [cte for cte in used_ctes(tokens, ctes, (after, stop)) if not self._is_stream(cte)]
        return None if len(remaining) == len(ctes) else (self._with_text(remaining), after)

    def _is_stream(self, cte: Cte) -> bool:
        return parse_to_stream(self.tokens, *cte.body) is not None or self._selects_stream(*cte.body)

    def _piece(self, start: int, stop: int) -> SqlText:
        """The text from the start of a token to the end of the one before another, followed by a space."""
        return piece_of(self.tokens, start, stop, " ")

    # -- inputs --------------------------------------------------------------------------------------

    def _input(self, index: int, stop: int) -> tuple[SqlText, int] | None:
        """A time-varying relation that begins at a token: its text, and the token after it."""
        tokens = self.tokens
        refuse_alias_before(tokens, index)
        if tokens.is_symbol(index - 1, "."):
            return None
        if is_changelog(tokens, index):
            changes, after = self._changelog(index)
            if tokens.is_symbol(after, "["):
                return self._windowed(index, after, stop)
            known = self.inputs.get((index, after), changes)
            return self._placed((index, after), known, None, stop)
        bracket = self._bracket_after(index, stop)
        if bracket is not None:
            return self._windowed(index, bracket, stop)
        if self._comes_bare(index):
            token = tokens[index]
            return self._bare(index, index + 1, self.declared.get(token.start, token.name), token.name, stop)
        made = self._made_in_from(index)
        if made is not None:
            return self._unwindowed(index, made, stop)
        to_stream = tokens.word(index) in ("ISTREAM", "DSTREAM", "RSTREAM") and tokens.is_symbol(
            index + 1, "("
        )
        in_from = tokens[index].is_name and begins_relation(tokens, index)
        if to_stream and not in_from and tokens.word(index - 1) != "AS":
            raise misplaced_to_stream(tokens, index)
        if not in_from:
            return None
        if _calls_or_has_fields(tokens, index):
            return None
        name = tokens[index].name.lower()
        if name in self.relations and self._cte(name, index) is None:
            item = NamedRelation(self._key(index), tokens[index].name, tokens[index].span)
            return self._placed((index, index + 1), item, tokens[index].name, stop)
        return None

    def _comes_bare(self, index: int) -> bool:
        """Whether a token is a stream without a window in SELECT STREAM."""
        tokens = self.tokens
        return (
            any(start <= index < stop for start, stop in self._as_they_come)
            and tokens[index].is_name
            and begins_relation(tokens, index)
            and not _calls_or_has_fields(tokens, index)
            and (tokens[index].start in self.declared or tokens[index].name.lower() in self.streams)
            and self._cte(tokens[index].name, index) is None
        )

    def _bare(
        self, index: int, after: int, source: str | StreamQuery, name: str | None, stop: int
    ) -> tuple[SqlText, int]:
        """A stream without a window: each row at its rowtime alone, as of [NOW]."""
        window = StreamWindowClause((after, after), is_now=True)
        span = self.tokens.span(index, after)
        item = WindowedStream(self._key(index), source, window, (), None, None, span)
        return self._placed((index, after), item, name, stop)

    def _made_in_from(self, index: int) -> Range | None:
        """The query of a stream in FROM, in brackets, by its name, or by ISTREAM and its like."""
        tokens = self.tokens
        if not begins_relation(tokens, index):
            return None
        if tokens.is_symbol(index, "("):
            inside = index + 1, tokens.partner[index]
            is_operand = tokens.word(inside[1] + 1) in _SET_OPERATORS
            is_apart = tokens[index].start in self.declared
            return inside if self._selects_stream(*inside) and not is_operand and not is_apart else None
        if tokens.word(index) in TO_STREAM and tokens.is_symbol(index + 1, "("):
            return index, self._after_call(index)
        if not tokens[index].is_name or _calls_or_has_fields(tokens, index):
            return None
        cte = self._cte(tokens[index].name, index)
        return cte.body if cte is not None and self._is_stream(cte) else None

    def _unwindowed(self, index: int, made: Range, stop: int) -> tuple[SqlText, int] | None:
        """A stream made by a query in FROM, without a window: SELECT STREAM reads its rows as they arrive."""
        tokens, after = self.tokens, index + 1
        name: str | None = None
        cte = None if made[0] >= index else self._cte(tokens[index].name, index)
        if cte is not None:
            name = tokens[index].name
        else:
            after = tokens.partner[index] + 1 if tokens.is_symbol(index, "(") else made[1]
        if not any(start <= index < end for start, end in self._as_they_come):
            raise _stream_provided(tokens, tokens.span(index, after), "expected a relation in FROM")
        found = self._stream_of(*made) if cte is None else self._named_stream(cte)
        return None if found is None else self._bare(index, after, found, name, stop)

    def _after_call(self, index: int) -> int:
        """The token after ISTREAM(…) and its like, including DIFFERENCE USING."""
        tokens, after = self.tokens, self.tokens.partner[index + 1] + 1
        if tokens.word(after) in ("DIFFERENCE", "DIFFERENCES") and tokens.is_symbol(after + 2, "("):
            return tokens.partner[after + 2] + 1
        return after

    def _bracket_after(self, index: int, stop: int) -> int | None:
        """The bracket of the window of a stream that begins at a token."""
        tokens, at = self.tokens, index
        if tokens[index].is_name:
            if tokens.word(index) not in TO_STREAM or not tokens.is_symbol(index + 1, "("):
                at = index + 1
                while tokens.is_symbol(at, ".") and at + 1 < stop:
                    at += 2
            else:
                at = self._after_call(index)
        elif tokens.is_symbol(index, "("):
            at = tokens.partner[index] + 1
        return at if at < stop and at > index and window_at(tokens, at) else None

    def _windowed(self, index: int, bracket: int, stop: int) -> tuple[SqlText, int]:
        tokens = self.tokens
        window = parse_stream_window(tokens, bracket)
        after = window.tokens[1]
        known = self.inputs.get((index, after))
        source, name = self._source(index, bracket) if known is None else (known.source, None)  # type: ignore[union-attr]
        if known is not None and tokens[index].is_name and bracket == index + 1:
            name = tokens[index].name
        elif known is not None and tokens[index].start in self.declared and tokens[index].is_name:
            name = tokens[bracket - 1].name
        item = WindowedStream(
            self._key(index),
            source,
            window,
            tuple(self.text(*key) for key in window.partition_by),
            self.text(*window.on) if window.on else None,
            self.text(*window.distance) if window.distance else None,
            tokens.span(index, after),
        )
        return self._placed((index, after), item, name, stop)

    def _source(self, index: int, bracket: int) -> tuple[str | StreamQuery, str | None]:
        """The stream that a window is over, and its name if it has one."""
        tokens = self.tokens
        if tokens[index].start in self.declared:
            name = tokens[bracket - 1].name if tokens[index].is_name else None
            return self.declared[tokens[index].start], name
        if bracket == index + 1:
            name = tokens[index].name
            cte = self._cte(name, index)
            if cte is not None:
                found = self._named_stream(cte)
                if found is None:
                    raise _relation_provided(tokens, tokens[index].span, name)
                return found, name
            if name.lower() in self.relations:
                raise _relation_provided(tokens, tokens[index].span, name)
            if name.lower() not in self.streams:
                raise AnalysisError(
                    f"{name} is not a stream",
                    condition="UNKNOWN_STREAM",
                    sqlstate="42P01",
                    sql=tokens.sql,
                    span=tokens[index].span,
                    hint=did_you_mean(name, sorted(self.streams))
                    or f"declare one: session.stream('{name}', rows, rowtime='ts'); or, for a table, "
                    f"CREATE STREAM {name}_stream (…, ROWTIME ts …) FROM {name}",
                )
            return name, name
        found = self._stream_of(index, bracket)
        if found is None:
            raise _relation_provided(tokens, tokens.span(index, bracket), "the query")
        return found, None

    def _changelog(self, index: int) -> tuple[ChangelogOf, int]:
        """CHANGELOG OF that begins at a token, and the token after it."""
        tokens, after = self.tokens, self.tokens.partner[index + 2] + 1
        columns: tuple[tuple[str, Span], ...] = ()
        if tokens.word(after) == "KEY" and tokens.is_symbol(after + 1, "("):
            columns, after = named_columns(tokens, after + 1, "KEY"), tokens.partner[after + 1] + 1
        inside = self.read(index + 3, tokens.partner[index + 2])
        span = tokens.span(index, after)
        if isinstance(inside, StreamQuery):
            raise _stream_provided(tokens, span, "CHANGELOG OF takes a relation")
        prefix = self.with_list(index, inside.tokens)
        query = self._query(prefix, inside.text, *inside.tokens)
        if not query.is_temporal:
            raise _not_temporal(tokens, span)
        return ChangelogOf(self._key(index), query, columns, span), after

    def over_changes(self, query: Query, window: StreamWindowClause) -> tuple[Reader, Query]:
        """A query of tables of changes as one over such windows of streams of changes."""
        items = {item.key: item.windowed(window) for item in query.inputs if isinstance(item, ChangelogOf)}
        inputs = {at: items.get(item.key, item) for at, item in self.inputs.items()}
        windows = tuple(items.get(item.key, item) for item in query.inputs)
        return replace(self, inputs=inputs), replace(query, inputs=windows)

    def _placed(self, at: Range, item: Input, name: str | None, stop: int) -> tuple[SqlText, int]:
        """The input's key in place of its text, under its name in the query."""
        self.inputs[at] = item
        named = alias_after(self.tokens, at[1], stop) is not None or name is None
        return SqlText.of(RelationText(item.key), " " if named else f" AS {quoted(name or '')} "), at[1]

    def _key(self, index: int) -> str:
        return f"__input{canonical_place(self.tokens, index)}"

    def _cte(self, name: str, position: int) -> Cte | None:
        seen = [cte for cte in visible_ctes(self.tokens, position) if cte.name.lower() == name.lower()]
        return seen[-1] if seen else None

    def _relation_named(self, index: int) -> SqlText:
        name = self.tokens[index].name
        if name.lower() in self.relations and self._cte(name, index) is None:
            item = NamedRelation(self._key(index), name, self.tokens[index].span)
            return self._placed((index, index + 1), item, name, index + 1)[0]
        return SqlText.of(self._piece(index, index + 1))

    def _refuse_stream(self, index: int, what: str) -> None:
        if self.tokens[index].name.lower() in self.streams:
            raise _stream_provided(self.tokens, self.tokens[index].span, what)

    def refuse_bare_streams(self, query: Query) -> None:
        """Refuse a stream without a window in a time-varying query.

        Raises
        ------
        AnalysisError
            ``STREAM_WITHOUT_WINDOW``.
        """
        tokens, after = self.tokens, 0
        for index in range(*query.tokens):
            is_apart = tokens.is_symbol(index, "(") and (
                tokens[index].start in self.declared or self._selects_stream(index + 1, tokens.partner[index])
            )
            if is_apart:
                after = tokens.partner[index]
            if (
                index >= after
                and tokens[index].is_name
                and tokens[index].name.lower() not in self.tables
                and (tokens[index].name.lower() in self.streams or tokens[index].start in self.declared)
                and not tokens.is_symbol(index - 1, ".")
                and not tokens.is_symbol(index + 1, "[")
                and not _calls_or_has_fields(tokens, index)
                and begins_relation(tokens, index)
                and self._cte(tokens[index].name, index) is None
            ):
                raise _stream_provided(tokens, tokens[index].span, "expected a relation in FROM")

    def after_with(self, start: int, stop: int) -> int:
        """The token after a statement's WITH list, if any."""
        if self.tokens.word(start) != "WITH":
            return start
        items = with_items(self.tokens, start)
        return items[-1].item[1] if items and items[-1].item[1] < stop else start


def _calls_or_has_fields(tokens: TokenList, index: int) -> bool:
    return tokens.is_symbol(index + 1, "(") or tokens.is_symbol(index + 1, ".")


def _not_temporal(tokens: TokenList, span: Span, hint: str = "read it as a table") -> AnalysisError:
    return AnalysisError(
        "the relation does not change over time: it reads no window of a stream",
        condition="NOT_VARYING",
        sql=tokens.sql,
        span=span,
        hint=hint,
    )


def _relation_provided(tokens: TokenList, span: Span, what: str) -> AnalysisError:
    return AnalysisError(
        f"{what} is a relation; only a stream can have a window",
        condition="RELATION_WHERE_STREAM_IS_NEEDED",
        sql=tokens.sql,
        span=span,
        hint="write ISTREAM(query), the stream of rows that are inserted into the relation",
    )


def _stream_provided(tokens: TokenList, span: Span, what: str) -> AnalysisError:
    return AnalysisError(
        f"{what}, found a stream",
        condition="STREAM_WHERE_RELATION_IS_NEEDED",
        sql=tokens.sql,
        span=span,
        hint="add a window, such as [NOW] or [RANGE UNBOUNDED]",
    )
