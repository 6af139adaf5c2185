"""Subqueries of a clause that change over time: values that the rows of the clause are joined with.

    FROM s [RANGE 5] WINDOW BY w AS (… START AS f WHEN f.v > (SELECT AVG(x) FROM o [RANGE 9]) …)

    →   rows      FROM (… FROM s [RANGE 5]), (SELECT (SELECT AVG(x) FROM o [RANGE 9]) AS c)
        START     AS f WHEN f.v > f.c

    … WHEN EXISTS (SELECT 1 FROM o [RANGE 9] WHERE o.k = f.k)

    →   rows      FROM (… FROM s [RANGE 5]), (SELECT (SELECT collect_list(struct(*)) FROM o [RANGE 9]) AS c)
        START     … WHEN EXISTS (SELECT 1 FROM (SELECT inline(f.c)) AS o WHERE o.k = f.k)

    … AND o.x > (SELECT MIN(x) FROM p [RANGE 9] WHERE p.k = o.k)

    →   … FROM (SELECT f.d AS d) AS __lists1, (SELECT inline(f.c)) AS o WHERE …
        AND o.x > (SELECT MIN(x) FROM (SELECT inline(__lists1.d)) AS p WHERE p.k = o.k)

At each instant all rows have the same values, so a partition changes where a value does. A subquery sees one
query around it, so a list that is read further inside is handed on in FROM of each query in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from windrow.algebra.aggregate_calls import calls_aggregate
from windrow.algebra.names import OUTER, QUALIFIED, ROW, of_relation
from windrow.algebra.scopes import scopes
from windrow.algebra.window_node import WindowFragment
from windrow.errors import NotSupportedError, Span
from windrow.syntax.cql_clauses import alias_after, begins_relation, window_at
from windrow.syntax.expression_nodes import Name
from windrow.syntax.nodes import Cte, Range, is_within
from windrow.syntax.query_parts import is_set_operator, visible_ctes
from windrow.syntax.select_list import without_distinct
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import opens_query, own_relations, subqueries
from windrow.syntax.tokens import TokenList

__all__ = ["VaryingValues", "reads_varying", "refuse_varying", "varying_values"]

_ROWS, _VALUES, _LISTS = "__rows", "__varying", "__lists"


@dataclass(frozen=True)
class _Relation:
    """A relation in FROM that changes over time, without its alias, and the named query that it is."""

    range: Range
    cte: Cte | None = None


def _find(tokens: TokenList, within: Range, relations: Collection[str]) -> list[_Relation]:
    """The outermost relations of a stretch that change over time: windows in brackets, changelogs, and what
    reads them.

    `relations` are the names, in lower case, of those of the session.
    """
    found: list[_Relation] = []
    at, stop = within
    while at < stop:
        one = _relation_at(tokens, at, relations)
        if one is not None:
            found.append(one)
            at = one.range[1]
        else:
            at += 1
    return found


def reads_varying(tokens: TokenList, within: Range, relations: Collection[str]) -> bool:
    """Whether a stretch reads what changes over time; `relations` are as for :func:`_find`."""
    return bool(_find(tokens, within, relations))


def _relation_at(tokens: TokenList, at: int, relations: Collection[str]) -> _Relation | None:
    if not begins_relation(tokens, at) or tokens.is_symbol(at + 1, "."):
        return None
    if tokens.word(at) == "CHANGELOG" and tokens.word(at + 1) == "OF" and tokens.is_symbol(at + 2, "("):
        last = tokens.partner[at + 2]
        has_key = tokens.word(last + 1) == "KEY" and tokens.is_symbol(last + 2, "(")
        return _Relation((at, (tokens.partner[last + 2] if has_key else last) + 1))
    bracket = tokens.partner[at] + 1 if tokens.is_symbol(at, "(") else at + 1
    if tokens.is_symbol(bracket, "[") and window_at(tokens, bracket):
        return _Relation((at, tokens.partner[bracket] + 1))
    if not tokens[at].is_name or tokens.is_symbol(at + 1, "("):
        return None
    name = tokens[at].name.lower()
    cte = next((one for one in reversed(visible_ctes(tokens, at)) if one.name.lower() == name), None)
    if cte is None:
        return _Relation((at, at + 1)) if name in relations else None
    is_inside = cte.body[0] <= at < cte.body[1]  # a recursion
    varies = not is_inside and any(_find(tokens, cte.body, relations))
    return _Relation((at, at + 1), cte) if varies else None


@dataclass(frozen=True)
class VaryingValue:
    """A value that stands for a stretch of the clause: of a subquery, or the list of a relation's rows.

    `relation` is the name that such a relation has where no alias follows it, and empty with one; None of a
    subquery. So many subqueries are `between` it and the one in the clause.
    """

    range: Range
    field: str
    relation: str | None
    between: int = 0

    def text(self, row: str) -> str:
        """The SQL in its place, with the row before the field."""
        value = (
            f"{_lists(self.between)}.{quoted(self.field)}" if self.between else f"{row}{quoted(self.field)}"
        )
        if self.relation is None:
            return value
        return f"(SELECT inline({value}))" + (f" AS {quoted(self.relation)}" if self.relation else "")


@dataclass(frozen=True)
class _HandedOn:
    """Lists that a SELECT has in FROM, for the subqueries in it.

    Attributes
    ----------
    source
        The word FROM.
    stars
        Where what stands for all columns leaves them out.
    level
        The SELECT's own subqueries have so many `between` them and the one in the clause.
    fields
        The fields of the lists.
    """

    source: int
    stars: tuple[Range, ...]
    level: int
    fields: tuple[str, ...]

    def words(self, row: str) -> dict[Range, str]:
        """The SQL in place of words of the SELECT, with the row before the fields of the clause's rows."""
        before = f"{_lists(self.level - 1)}." if self.level > 1 else row
        names = [quoted(field) for field in self.fields]
        columns = ", ".join(f"{before}{name} AS {name}" for name in names)
        found = {(self.source, self.source + 1): f"FROM (SELECT {columns}) AS {_lists(self.level)}, "}
        listed = ", ".join(names)
        for start, stop in self.stars:
            found[start, stop] = f"* EXCEPT ({listed})" if stop == start + 1 else f"* EXCEPT ({listed}, "
        return found


def _lists(level: int) -> str:
    """The relation of the lists that a SELECT hands on."""
    return quoted(f"{_LISTS}{level}")


@dataclass(frozen=True)
class VaryingValues:
    """The values of a clause.

    Attributes
    ----------
    values
        What they stand for.
    queries
        The queries for one value, by the fields of the rows that have them.
    handed_on
        The SELECTs that hand lists on to subqueries.
    """

    tokens: TokenList
    values: tuple[VaryingValue, ...]
    queries: dict[str, SqlText]
    handed_on: tuple[_HandedOn, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the rows."""
        return tuple(self.queries)

    def joined(
        self, prefix: SqlText, rows: SqlText, keys: Sequence[str], more: Sequence[str] = ()
    ) -> SqlText:
        """The rows with the values; `keys` are the columns beside the row, and `more` keys are values."""
        values = ", ".join(map(quoted, self.fields))
        columns = [f"struct({_ROWS}.{ROW}.*, {values}) AS {ROW}", *keys]
        columns += [f"{quoted(field)} AS {key}" for field, key in zip(self.fields, more, strict=False)]
        items = [SqlText.of(query, f" AS {quoted(field)}") for field, query in self.queries.items()]
        values_of_all = SqlText.of("(SELECT ", SqlText.join(", ", items), f") AS {_VALUES}")
        listed = ", ".join(columns)
        return SqlText.of(prefix, f"SELECT {listed} FROM (", rows, f") AS {_ROWS}, ", values_of_all)

    def keys(self) -> tuple[WindowFragment, ...]:
        """The values as keys of PARTITION BY."""
        first = {value.field: value.range for value in reversed(self.values)}
        return tuple(
            WindowFragment(
                SqlText.of(quoted(field)), Name((field,), first[field]), self.tokens.span(*first[field])
            )
            for field in self.fields
        )

    def inside(self, part: Range) -> list[VaryingValue]:
        """Those that stand in a stretch."""
        return [value for value in self.values if part[0] <= value.range[0] and value.range[1] <= part[1]]

    def atoms(self, part: Range, row: str) -> dict[int, Name]:
        """What stands in a stretch: fields of a row."""
        return {value.range[0]: Name((row, value.field), value.range) for value in self.inside(part)}

    def texts(self, part: Range, row: str) -> dict[Range, str]:
        """The SQL for Spark in a stretch."""
        return self.words(part, f"{quoted(QUALIFIED + row)}.")

    def words(self, part: Range, row: str) -> dict[Range, str]:
        """The SQL in places of a stretch, with the row before a field."""
        found = {value.range: value.text(row) for value in self.inside(part)}
        for one in self.handed_on:
            if part[0] <= one.source < part[1]:
                found |= one.words(row)
        return found

    def columns(self) -> dict[Range, Name]:
        """What stands for them where the fields are columns."""
        return {value.range: Name((value.field,), value.range) for value in self.values}


def varying_values(
    tokens: TokenList,
    parts: Sequence[Range],
    varying: Collection[str],
    rows: Collection[str] | None,
    text: Callable[[int, int], SqlText],
    at: int,
    lengths: Sequence[Range] = (),
) -> VaryingValues | None:
    """The values of the subqueries in these parts of a clause that begins at a token; None without any.

    `varying` are relations of the session that do. `rows` are the names by which a subquery reads rows; None
    where it may read them by other names too. All are in lower case. A subquery that reads none is a value,
    as are all in `lengths`, else each relation in it is a list.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for a relation in a subquery of a subquery that reads rows of the clause, or in
        places of this one where no list can be handed on.
    """
    values: list[VaryingValue] = []
    queries: dict[str, SqlText] = {}
    fields: dict[tuple[str, ...], str] = {}
    handed_on: dict[int, _HandedOn] = {}
    found = (*_places(tokens, parts, varying, rows), *_places(tokens, lengths, varying, ()))
    for place, name, between in found:
        known = tokens.folded(*place)
        if known not in fields:
            what = "subquery" if name is None else "rows"
            fields[known] = of_relation(f"{OUTER}{at}", f"{what}{len(fields)}")
            query = text(*place)
            if name is not None:
                query = SqlText.of("(SELECT sort_array(collect_list(struct(*))) FROM ", query, ")")
            queries[fields[known]] = query
        values.append(VaryingValue(place, fields[known], name, len(between)))
        for one in (_handing_on(tokens, inner, level) for level, inner in enumerate(between, 1)):
            listed = handed_on[one.source].fields if one.source in handed_on else ()
            handed_on[one.source] = replace(one, fields=tuple(dict.fromkeys((*listed, fields[known]))))
    return VaryingValues(tokens, tuple(values), queries, tuple(handed_on.values())) if values else None


def _places(
    tokens: TokenList,
    parts: Sequence[Range],
    varying: Collection[str],
    rows: Collection[str] | None,
) -> Iterator[tuple[Range, str | None, Sequence[Range]]]:
    """The stretches that values stand for, of relations their names, and the subqueries in between."""
    for start, stop in (query for part in parts for query in subqueries(tokens, part)):
        inside = _find(tokens, (start, stop), varying)
        if not inside:
            continue
        words = {tokens[at].name.lower() for at in range(start, stop) if tokens[at].is_name}
        if rows is not None and words.isdisjoint(rows) and tokens.word(start - 1) != "IN":
            yield _operand(tokens, (start, stop)), None, ()
            continue
        deeper = start
        for one in inside:
            if one.range[0] < deeper:
                continue  # a value stands for it
            if one.cte is None or one.cte.item[0] < start:
                between = _subqueries_with(tokens, one, start)
                if between and not _is_dependent(tokens, one, between[0], inside, rows or ()):
                    deeper = between[0][1]
                    yield _operand(tokens, between[0]), None, ()
                    continue
                has_alias = alias_after(tokens, one.range[1], stop) is not None
                is_name = tokens[one.range[0]].is_name
                yield one.range, tokens[one.range[0]].name if is_name and not has_alias else "", between


def _operand(tokens: TokenList, query: Range) -> Range:
    """A subquery, with EXISTS before it."""
    return query[0] - (tokens.word(query[0] - 1) == "EXISTS"), query[1]


def _subqueries_with(tokens: TokenList, one: _Relation, query: int) -> list[Range]:
    """The subqueries with a relation, inside of that which opens at a token, from the outermost inwards.

    None of them is a relation of FROM or WITH.
    """
    at, found = tokens.parent[one.range[0]], []
    while at > query:
        is_operand = is_set_operator(tokens, at - 1) or tokens.word(at - 1) in ("ALL", "DISTINCT")
        is_operand |= tokens.parent[at] == at - 1 and opens_query(tokens, at)
        if opens_query(tokens, at) and not (
            begins_relation(tokens, at) or tokens.word(at - 1) == "AS" or is_operand
        ):
            found.append((at, tokens.partner[at] + 1))
        at = tokens.parent[at]
    return found[::-1]


def _is_dependent(
    tokens: TokenList, one: _Relation, inner: Range, beside: Sequence[_Relation], rows: Collection[str]
) -> bool:
    """Whether an inner subquery is no value, as it reads the one around it or stands behind IN.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` where it reads `rows`: Spark sees one query around.
    """
    named = {_name(tokens, other) for other in beside if not is_within(other.range, inner)}
    scope = next(scopes(tokens, inner[0], ()), None)
    named |= set() if scope is None else scope.names
    qualifiers = {
        tokens[at].name.lower()
        for at in range(*inner)
        if tokens[at].is_name and tokens.is_symbol(at + 1, ".")
    }
    own = {_name(tokens, other) for other in beside if is_within(other.range, inner)}
    read = qualifiers - own - {name.lower() for name in own_relations(tokens, inner)}
    if not read.isdisjoint(set(rows) - named):
        where = "in a subquery of a subquery, with rows of the clause,"
        raise _refused(tokens, one, where, "read these rows in the outer subquery alone")
    return not read.isdisjoint(named) or tokens.word(inner[0] - 1) == "IN"


def _name(tokens: TokenList, one: _Relation) -> str:
    """The name by which columns of a relation are read, in lower case."""
    alias = alias_after(tokens, one.range[1], len(tokens))
    return tokens[one.range[0] if alias is None else alias].name.lower()


def _handing_on(tokens: TokenList, inner: Range, level: int) -> _HandedOn:
    """The SELECT around a subquery, which hands a list on to it.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` where a further relation of FROM is not seen, or would make further groups.
    """
    scope = next(scopes(tokens, inner[0], ()), None)
    source = None if scope is None or not scope.is_whole else scope.source
    if source is not None:
        assert scope is not None
        parent = tokens.parent[inner[0]]
        level_of_query = tokens.level(parent + 1, tokens.partner[parent])
        own = [at for at in level_of_query if at < source[0]]
        select = max((at for at in own if tokens.word(at) == "SELECT"), default=None)
        in_where = scope.where is not None and scope.where[0] <= inner[0] < scope.where[1]
        words = {tokens.word(at) for at in level_of_query if at >= source[0]}
        if select is not None and words.isdisjoint(("PIVOT", "UNPIVOT")):
            items = without_distinct(tokens, (select + 1, source[0] - 1))
            groups = "GROUP" in words or calls_aggregate(tokens, items)
            if in_where or not groups:
                return _HandedOn(source[0] - 1, tuple(_stars(tokens, items)), level, ())
    raise NotSupportedError(
        "a subquery over a relation that changes over time is not supported here,"
        " in a subquery of a clause over windows of time",
        condition="UNSUPPORTED_STREAM",
        sql=tokens.sql,
        span=tokens.span(*inner),
        hint="put the inner subquery in WHERE, or in FROM",
    )


def _stars(tokens: TokenList, items: Range) -> Iterator[Range]:
    """Stars for all columns among the items of a SELECT, also in calls; with EXCEPT, up to its list."""
    for at in range(*items):
        begins = at == items[0] or tokens.is_symbol(at - 1, ",") or tokens.is_symbol(at - 1, "(")
        is_count = tokens.word(at - 2) == "COUNT" and tokens.is_symbol(at + 1, ")")
        if tokens.is_symbol(at, "*") and begins and not is_count:
            yield at, at + 3 if tokens.word(at + 1) == "EXCEPT" else at + 1


def refuse_varying(tokens: TokenList, clause: Span, varying: Collection[str], known: Sequence[Range]) -> None:
    """Refuse relations that vary in a clause, but in these parts of it.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM``.
    """
    for at, token in enumerate(tokens.tokens):
        if clause.start <= token.start < clause.stop and not any(start <= at < stop for start, stop in known):
            one = _relation_at(tokens, at, varying)
            if one is not None:
                raise _refused(tokens, one, "here", "join it with the rows, in a query in FROM")


def _refused(tokens: TokenList, one: _Relation, where: str, hint: str) -> NotSupportedError:
    return NotSupportedError(
        f"a relation that changes over time, {where} in a clause over windows of time, is not supported",
        condition="UNSUPPORTED_STREAM",
        sql=tokens.sql,
        span=tokens.span(*one.range),
        hint=hint,
    )
