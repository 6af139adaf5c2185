"""Temporal joins: a stream joined with the version of another that is valid at a time.

By processing time, a version is valid from its rowtime until that of the next version of its key, which is an
added column. Late versions change earlier results. As a stream, the versions are the last row of each key at
the instant of each row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.scopes import is_clause
from windrow.errors import AnalysisError, NotSupportedError, ParseError, no_column
from windrow.plan.arrow_types import is_orderable
from windrow.plan.event_time import UNTIL
from windrow.relation import Relation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import Stream
from windrow.statements.definitions.view_expansion import remember_expanded
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.definitions.create_view import parse_view
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.query_parts import is_set_operator, level_around, visible_ctes
from windrow.syntax.select_list import aliased, excepted, without_distinct
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.streams.as_of import AsOf, as_of_joins
from windrow.syntax.streams.other_dialects import Spelled
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["may_join_versions", "view_of_versions", "with_versions", "without_ours"]

_WORDS = re.compile(r"\bfor\s+system_time\s+as\s+of\b", re.IGNORECASE)


def may_join_versions(text: str) -> bool:
    """Whether a text may have a temporal join."""
    return _WORDS.search(text) is not None


@contextmanager
def with_versions(gateway: Gateway, catalog: Catalog, text: str) -> Iterator[str | None]:
    """The text with temporal joins rewritten; None if there are none over streams.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_CLAUSE``, ``UNSUPPORTED_STREAM``.
    """
    tokens = tokenize(text)
    joins = as_of_joins(tokens, catalog.streams)
    if not joins:
        yield None
        return
    edits = Edits(tokens)
    as_stream = _as_stream(tokens)
    blocks: dict[Range | None, dict[int, AsOf]] = {}
    merged: dict[Range | None, dict[str, str]] = {}
    for number, written in enumerate(joins):
        stream = catalog.streams[tokens[written.name].name.lower()]
        _refuse_other_keys(tokens, written, stream)
        join = _with_common_keys(gateway, tokens, written, stream) if "NATURAL" in written.kind else written
        for at in (*range(join.begin, join.name - 1), *range(join.name + 1, join.after)):
            if at > join.name or tokens.word(at) in ("CROSS", "NATURAL"):
                edits.instead[at] = SqlText()
        if as_stream:
            edits.instead[join.name] = _windowed(tokens, join, stream, catalog)
            if not join.is_written:
                keys = ", ".join(map(quoted, join.keys))
                edits.put(join.after, f"USING ({keys})" if keys else "ON TRUE")
        else:
            block = _block(tokens, join)
            blocks.setdefault(block, {})[number] = join
            edits.instead[join.name] = _lasting(tokens, join, stream, number)
            _put_condition(edits, join, stream, number, merged.setdefault(block, {}))
    for place, inside in blocks.items():
        if place is not None:
            _show(edits, place, inside, merged[place])
    with gateway.instead(edits.text(0, len(tokens))) as read:
        yield read


def view_of_versions(
    gateway: Gateway, catalog: Catalog, text: str, run_query: Callable[[str], Relation]
) -> bool:
    """Make a view of a query with a temporal join, which stands for its query where it is read; whether the
    statement is one.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT`` for a permanent view, ``UNSUPPORTED_STREAM`` for one with parameters.
    """
    tokens = tokenize(text)
    view = parse_view(tokens, 0, len(tokens))
    if view is None or _as_stream(tokens) or not as_of_joins(tokens, catalog.streams):
        return False
    if not view.words.is_temporary:
        hint = "create a TEMPORARY VIEW in each session"
        raise unsupported_statement(tokens, 0, "a permanent view of a temporal join", hint)
    with gateway.instead(piece_of(tokens, *view.body)) as query:
        names = run_query(query).columns
    if not gateway.plan_only:
        remember_expanded(gateway, catalog, Spelled(tokens, frozenset()), view, names)
    return True


def _as_stream(tokens: TokenList) -> bool:
    return any(tokens.word(at) == "SELECT" and tokens.word(at + 1) == "STREAM" for at in range(len(tokens)))


def _put_condition(edits: Edits, join: AsOf, stream: Stream, number: int, merged: dict[str, str]) -> None:
    """The condition with that on the time; USING becomes ON, and the columns that it merges are added."""
    tokens, alias = edits.tokens, quoted(join.alias)
    time, until = piece_of(tokens, *join.time), f"{alias}.{UNTIL}{number}"
    time = time if _is_column_name(tokens, join.time) else SqlText.of("(", time, ")")
    since = f"{alias}.{quoted(stream.rowtime or '')}"
    first, last = join.on
    valid = SqlText.of(time, f" >= {since} AND ({until} IS NULL OR ", time, f" < {until})")
    if join.is_written and not join.using:
        edits.put(first, "(")
        edits.put(last, ") AND ", valid)
        return
    other = _merging(tokens, join) if join.using else ""
    places = [at for at, _ in tokens.split(first, last)] if join.is_written else [join.name] * len(join.keys)
    equal = []
    for at, key in zip(places, join.keys, strict=True):
        own, versions = f"{other}.{quoted(key)}", f"{alias}.{quoted(key)}"
        equal.append(_standing(tokens, at, f"{own} = {versions}"))
        if "FULL" in join.kind:
            own = f"COALESCE({own}, {versions})"
        merged[key.lower()] = versions if "RIGHT" in join.kind else own
    if join.is_written:
        for at in range(first - 2, last + 1):
            edits.instead[at] = SqlText()
    edits.put(first - 2 * join.is_written, "ON ", SqlText.join(" AND ", [*equal, valid]))


def _is_column_name(tokens: TokenList, part: Range) -> bool:
    """Whether a part of a text is the name of a column, with its relation or without."""
    return tokens[part[0]].is_name and part[1] - part[0] in (1, 3) and tokens[part[1] - 1].is_name


def _standing(tokens: TokenList, at: int, text: str) -> SqlText:
    """A text that stands for a token."""
    return SqlText.of(Piece(text, tokens.sql, tokens[at].start, len(tokens[at].text)))


def _merging(tokens: TokenList, join: AsOf) -> str:
    """The relation of the time, of which USING merges columns with those of the versions."""
    relations = {
        tokens[at].name.lower(): at
        for at in range(*join.time)
        if tokens[at].is_name and tokens.is_symbol(at + 1, ".")
    }
    if len(relations) == 1:
        return tokens[next(iter(relations.values()))].text
    place = (join.on[0] - 2, join.on[1] + 1) if join.is_written else join.time
    raise NotSupportedError(
        f"a temporal join by {'USING' if join.is_written else 'NATURAL JOIN'} as of a column without its"
        " relation is not supported",
        condition="UNSUPPORTED_CLAUSE",
        sql=tokens.sql,
        span=tokens.span(*place),
        hint="write FOR SYSTEM_TIME AS OF o.ts",
    )


def _with_common_keys(gateway: Gateway, tokens: TokenList, join: AsOf, stream: Stream) -> AsOf:
    """NATURAL JOIN, of which the keys are the columns that both sides have."""
    level = [at for at in tokens.level(*level_around(tokens, join.name)) if at < join.begin]
    begins = (at + 1 for at in level if is_clause(tokens, at, "FROM") or tokens.is_symbol(at, ","))
    side = piece_of(tokens, max(begins), join.begin)
    named = [piece_of(tokens, *one.item) for one in visible_ctes(tokens, join.name)]
    before = SqlText.of("WITH ", SqlText.join(", ", named), " ") if named else SqlText()
    known = {name.lower() for name in stream.columns}
    try:
        found = [
            [name for name in gateway.sql(text).columns if name.lower() in known]
            for star in ("*", f"{_merging(tokens, join)}.*")
            for text in [SqlText.of(before, f"SELECT {star} FROM ", side)]
        ]
    except (AnalysisError, ParseError):
        found = []
    if not found or found[0] != found[1]:
        raise NotSupportedError(
            "NATURAL JOIN of a temporal join with a side of which Spark does not know the columns, or several"
            " relations have these, is not supported",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(join.begin, join.after),
            hint="write JOIN … USING with the names of the common columns",
        )
    return replace(join, keys=tuple(found[0]))


def _block(tokens: TokenList, join: AsOf) -> Range | None:
    """The SELECT around a join, up to a set operator; None for a query that begins with FROM."""
    level = tokens.level(*level_around(tokens, join.name))
    selects = [at for at in level if at < join.name and tokens.word(at) == "SELECT"]
    if not selects:
        return None
    stops = [at for at in level if at > join.name and is_set_operator(tokens, at)]
    has_several = bool(stops) or any(is_set_operator(tokens, at) for at in level)
    sorting = ("ORDER", "SORT", "LIMIT", "OFFSET") if has_several else ()
    stops += [at for at in level if at > join.name and tokens.word(at) in sorting]
    return selects[-1], min(stops, default=level[-1] + 1)


def _show(edits: Edits, block: Range, joins: Mapping[int, AsOf], merged: Mapping[str, str]) -> None:
    """Let stars leave out the added columns, and names of columns that USING merges stand for these."""
    tokens, (select, stop) = edits.tokens, block
    start = without_distinct(tokens, (select + 1, stop))[0]
    level = tokens.level(start, stop)
    end = next(at for at in level if tokens.word(at) == "FROM" and tokens.word(at - 1) != "DISTINCT")
    items = tokens.split(start, end)
    shown = {number: join for number, join in joins.items() if join.shows_versions}
    merging = [join for join in joins.values() if join.using]
    sides = {
        name.lower(): f"{_merging(tokens, join)}.{quoted(name)}" for join in merging for name in join.keys
    }
    aliases = {last - 1 for first, last in items if aliased(tokens, (first, last)) is not None}
    brackets = [found for item in items if (found := excepted(tokens, item)) is not None]
    for at in range(select, stop):
        name = tokens[at].name.lower() if tokens[at].is_name and at not in aliases else ""
        if name in merged and _is_column(tokens, at, block, joins):
            value = sides[name] if tokens.parent[at] in brackets else merged[name]
            is_item = (at, at + 1) in items
            edits.instead[at] = _standing(tokens, at, _named(value, name) if is_item else value)
    for first, last in items:
        bracket = excepted(tokens, (first, last))
        star = first if tokens.is_symbol(first, "*") else first + 2
        if not tokens.is_symbol(star, "*") or (bracket is None and last != star + 1):
            continue
        left_out = set()
        if bracket is not None:
            left_out = {tokens[at].name.lower() for at, after in tokens.split(bracket + 1, last - 1)}
        if star == first:
            columns = {name: column for name, column in merged.items() if name not in left_out}
            hidden = [sides[name] for name in columns]
            hidden += [
                f"{quoted(join.alias)}.{quoted(key)}"
                for join in merging
                if join.shows_versions
                for key in join.keys
            ]
            hidden += [f"{UNTIL}{number}" for number in shown]
        else:
            alias = tokens[first].name.lower()
            others = [join for join in merging if _merging(tokens, join).strip("`").lower() == alias]
            own = {number: join for number, join in shown.items() if join.alias.lower() == alias}
            keys = {key.lower(): key for join in (*others, *own.values()) if join.using for key in join.keys}
            columns = {
                name: f"{tokens[first].text}.{quoted(key)}"
                for name, key in keys.items()
                if name not in left_out
            }
            hidden = [quoted(keys[name]) for name in columns]
            hidden += [f"{UNTIL}{number}" for number in own]
        if not hidden:
            continue
        edits.put(first, *(f"{_named(column, name)}, " for name, column in columns.items()))
        if bracket is None:
            edits.put(last, f" EXCEPT ({', '.join(hidden)})")
        else:
            edits.put(bracket + 1, f"{', '.join(hidden)}, ")


def _named(value: str, name: str) -> str:
    """A merged column with its name."""
    return f"{value} AS {quoted(name)}" if value.startswith("COALESCE(") else value


def _is_column(tokens: TokenList, at: int, block: Range, joins: Mapping[int, AsOf]) -> bool:
    """Whether a name is that of a column without its relation, in the block itself."""
    is_part = tokens.is_symbol(at - 1, ".") or tokens.is_symbol(at + 1, "(") or tokens.word(at - 1) == "AS"
    if is_part or any(join.on[0] <= at < join.on[1] for join in joins.values() if join.using):
        return False
    opened = tokens.parent[at]
    while opened > block[0]:
        if opens_query(tokens, opened) or tokens.word(opened - 2) == "AS":  # or an alias with columns
            return False
        opened = tokens.parent[opened]
    return not begins_relation(tokens, at)


def without_ours(relation: Relation) -> Relation:
    """Spark's result for such a text that begins with FROM, without the added column."""
    if type(relation) is not Relation or relation.is_plan:
        return relation
    ours = [name for name in relation.columns if name.startswith(UNTIL)]
    return Relation(relation.df.drop(*ours), relation.plan(), relation._gateway) if ours else relation


def _lasting(tokens: TokenList, join: AsOf, stream: Stream, number: int) -> SqlText:
    """The versions with the rowtime of the next version of their key."""
    _refuse_untimed(tokens, join, stream)
    rowtime = quoted(stream.rowtime or "")
    # of versions of one rowtime the greatest by their other columns is the last, in all executions
    kinds = {field.name: field.dataType for field in stream.frame.schema}
    others = [quoted(name) for name in stream.columns if name != stream.rowtime and is_orderable(kinds[name])]
    keys, order = _partition(join), ", ".join([rowtime, *others])
    name = piece_of(tokens, join.name, join.name + 1)
    return SqlText.of(
        f"(SELECT *, LEAD({rowtime}) OVER ({keys}ORDER BY {order}) AS {UNTIL}{number} FROM ",
        name,
        f") AS {quoted(join.alias)}",
    )


def _windowed(tokens: TokenList, join: AsOf, stream: Stream, catalog: Catalog) -> SqlText:
    """The last version of each key, at each instant."""
    _refuse_untimed(tokens, join, stream)
    if join.kind & {"RIGHT", "FULL"}:
        raise NotSupportedError(
            "a temporal join as RIGHT or FULL JOIN in SELECT STREAM is not supported",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(join.name, join.after),
            hint="write LEFT JOIN, or a query with EMIT",
        )
    is_column = _is_column_name(tokens, join.time)
    column = tokens[join.time[1] - 1].name.lower() if is_column else None
    rowtimes = {(known.rowtime or "").lower() for known in catalog.streams.values()}
    if column not in rowtimes:
        raise NotSupportedError(
            f"a temporal join as of {tokens.text(*join.time)}, which is not a rowtime, in SELECT STREAM is"
            " not supported",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(*join.time),
            hint="name the rowtime of the other stream, or write a query with EMIT, which takes any column",
        )
    name = piece_of(tokens, join.name, join.name + 1)
    return SqlText.of(name, f" [{_partition(join)}ROWS 1] AS {quoted(join.alias)}")


def _partition(join: AsOf) -> str:
    """PARTITION BY the key; nothing if all rows have one key."""
    return f"PARTITION BY {', '.join(map(quoted, join.keys))} " if join.keys else ""


def _refuse_other_keys(tokens: TokenList, join: AsOf, stream: Stream) -> None:
    known = {name.lower() for name in stream.columns}
    for key in join.keys:
        if key.lower() not in known:
            places = (at for at in range(*join.on) if tokens[at].is_name and tokens[at].name == key)
            name = tokens[join.name].name
            span = tokens[next(places)].span
            raise no_column(f"stream {name} has", key, list(stream.columns), sql=tokens.sql, span=span)


def _refuse_untimed(tokens: TokenList, join: AsOf, stream: Stream) -> None:
    if stream.rowtime is None:
        raise NotSupportedError(
            f"a temporal join with {tokens[join.name].name}, which has no rowtime column, is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=tokens.sql,
            span=tokens.span(join.name, join.after),
            hint="declare the stream with a rowtime column",
        )
