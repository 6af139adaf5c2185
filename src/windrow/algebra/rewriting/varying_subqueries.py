"""Time-varying subqueries of a clause: their values are joined with the rows of the clause.

    FROM s [RANGE 5] WINDOW BY w AS (… START AS f WHEN f.v > (SELECT AVG(x) FROM o [RANGE 9]) …)

    →   rows      FROM (… FROM s [RANGE 5]), (SELECT (SELECT AVG(x) FROM o [RANGE 9]) AS c)
        START     AS f WHEN f.v > f.c

    … WHEN EXISTS (SELECT 1 FROM o [RANGE 9] WHERE o.k = f.k)

    →   rows      FROM (… FROM s [RANGE 5]), (SELECT (SELECT collect_list(struct(*)) FROM o [RANGE 9]) AS c)
        START     … WHEN EXISTS (SELECT 1 FROM (SELECT inline(f.c)) AS o WHERE o.k = f.k)

At each instant all rows have the same values, so a partition changes where a value does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from windrow.algebra.names import OUTER, QUALIFIED, ROW, of_relation
from windrow.algebra.window_node import WindowFragment
from windrow.errors import NotSupportedError, Span
from windrow.syntax.cql_clauses import alias_after, begins_relation, window_at
from windrow.syntax.expression_nodes import Name
from windrow.syntax.nodes import Cte, Range, is_within
from windrow.syntax.query_parts import is_set_operator, visible_ctes
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import opens_query, own_relations, subqueries
from windrow.syntax.tokens import TokenList

__all__ = ["VaryingValues", "refuse_varying", "varying_values"]

_ROWS, _VALUES = "__rows", "__varying"


@dataclass(frozen=True)
class _Relation:
    """A time-varying relation in FROM, without its alias, and the named query that it is."""

    range: Range
    cte: Cte | None = None


def _find(tokens: TokenList, within: Range, relations: Collection[str]) -> list[_Relation]:
    """The outermost time-varying relations of a range: windows in brackets, changelogs, and queries over
    them.

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
    """A value that replaces a part of the clause: of a subquery, or the list of a relation's rows.

    `relation` is the name of such a relation if no alias follows it, and empty with an alias; None for a
    subquery.
    """

    range: Range
    field: str
    relation: str | None

    def text(self, row: str) -> str:
        """The SQL in its place, with the row before the field."""
        value = f"{row}{quoted(self.field)}"
        if self.relation is None:
            return value
        return f"(SELECT inline({value}))" + (f" AS {quoted(self.relation)}" if self.relation else "")


@dataclass(frozen=True)
class VaryingValues:
    """The values of a clause.

    Attributes
    ----------
    values
        What they stand for.
    queries
        The queries for one value, by the fields of the rows that have them.
    """

    tokens: TokenList
    values: tuple[VaryingValue, ...]
    queries: dict[str, SqlText]

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
        """The values in a range."""
        return [value for value in self.values if part[0] <= value.range[0] and value.range[1] <= part[1]]

    def atoms(self, part: Range, row: str) -> dict[int, Name]:
        """The substitutes in a range: fields of a row."""
        return {value.range[0]: Name((row, value.field), value.range) for value in self.inside(part)}

    def texts(self, part: Range, row: str) -> dict[Range, str]:
        """The SQL for Spark in a range."""
        return {value.range: value.text(f"{quoted(QUALIFIED + row)}.") for value in self.inside(part)}

    def columns(self) -> dict[Range, Name]:
        """The substitutes where the fields are columns."""
        return {value.range: Name((value.field,), value.range) for value in self.values}


def varying_values(
    tokens: TokenList,
    parts: Sequence[Range],
    varying: Collection[str],
    rows: Collection[str] | None,
    text: Callable[[int, int], SqlText],
    at: int,
) -> VaryingValues | None:
    """The values of the subqueries in these parts of a clause that begins at a token; None without any.

    `varying` are the time-varying relations of the session. `rows` are the names by which a subquery reads
    rows; None if it may read them by other names too. All are in lower case. A subquery that reads no rows is
    a value; otherwise each relation in it is a list.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for a relation in a subquery of a subquery that reads this one, or IN it.
    """
    values: list[VaryingValue] = []
    queries: dict[str, SqlText] = {}
    fields: dict[tuple[str, ...], str] = {}
    for place, name in _places(tokens, parts, varying, rows):
        known = tokens.folded(*place)
        if known not in fields:
            what = "subquery" if name is None else "rows"
            fields[known] = of_relation(f"{OUTER}{at}", f"{what}{len(fields)}")
            query = text(*place)
            if name is not None:
                query = SqlText.of("(SELECT sort_array(collect_list(struct(*))) FROM ", query, ")")
            queries[fields[known]] = query
        values.append(VaryingValue(place, fields[known], name))
    return VaryingValues(tokens, tuple(values), queries) if values else None


def _places(
    tokens: TokenList,
    parts: Sequence[Range],
    varying: Collection[str],
    rows: Collection[str] | None,
) -> Iterator[tuple[Range, str | None]]:
    """The parts that values replace, and for relations their names."""
    for start, stop in (query for part in parts for query in subqueries(tokens, part)):
        inside = _find(tokens, (start, stop), varying)
        if not inside:
            continue
        words = {tokens[at].name.lower() for at in range(start, stop) if tokens[at].is_name}
        if rows is not None and words.isdisjoint(rows) and tokens.word(start - 1) != "IN":
            yield (start - (tokens.word(start - 1) == "EXISTS"), stop), None
            continue
        deeper = start
        for one in inside:
            if one.range[0] < deeper:
                continue  # a value replaces it
            if one.cte is None or one.cte.item[0] < start:
                within = _subquery_with(tokens, one, start)
                if within is not None:
                    deeper = within[1]
                    _refuse_dependent(tokens, one, within, inside, rows or ())
                    yield (within[0] - (tokens.word(within[0] - 1) == "EXISTS"), deeper), None
                    continue
                has_alias = alias_after(tokens, one.range[1], stop) is not None
                is_name = tokens[one.range[0]].is_name
                yield one.range, tokens[one.range[0]].name if is_name and not has_alias else ""


def _subquery_with(tokens: TokenList, one: _Relation, query: int) -> Range | None:
    """The outermost subquery with a relation, inside the one that opens at a token; None in FROM or WITH."""
    at, found = tokens.parent[one.range[0]], None
    while at > query:
        is_operand = is_set_operator(tokens, at - 1) or tokens.word(at - 1) in ("ALL", "DISTINCT")
        is_operand |= tokens.parent[at] == at - 1 and opens_query(tokens, at)
        if opens_query(tokens, at) and not (
            begins_relation(tokens, at) or tokens.word(at - 1) == "AS" or is_operand
        ):
            found = at, tokens.partner[at] + 1
        at = tokens.parent[at]
    return found


def _refuse_dependent(
    tokens: TokenList, one: _Relation, inner: Range, beside: Sequence[_Relation], rows: Collection[str]
) -> None:
    """Refuse a relation in an inner subquery that is not a value, because it reads the outer one or
    `rows`.
    """
    named = {
        tokens[other.range[0] if alias is None else alias].name.lower()
        for other in beside
        if not is_within(other.range, inner)
        for alias in [alias_after(tokens, other.range[1], len(tokens))]
    }
    qualifiers = {
        tokens[at].name.lower()
        for at in range(*inner)
        if tokens[at].is_name and tokens.is_symbol(at + 1, ".")
    }
    own = {name.lower() for name in own_relations(tokens, inner)}
    if not qualifiers.isdisjoint((named | set(rows)) - own) or tokens.word(inner[0] - 1) == "IN":
        where = "in an inner correlated or IN subquery"
        raise _refused(tokens, one, where, "put the inner subquery in FROM")


def refuse_varying(tokens: TokenList, clause: Span, varying: Collection[str], known: Sequence[Range]) -> None:
    """Refuse time-varying relations in a clause, except in these parts of it.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM``.
    """
    for at, token in enumerate(tokens.tokens):
        if clause.start <= token.start < clause.stop and not any(start <= at < stop for start, stop in known):
            one = _relation_at(tokens, at, varying)
            if one is not None:
                raise _refused(tokens, one, "in this part", "join it with the rows in a subquery in FROM")


def _refused(tokens: TokenList, one: _Relation, where: str, hint: str) -> NotSupportedError:
    return NotSupportedError(
        f"a time-varying relation {where} of a clause over windows of time is not supported",
        condition="UNSUPPORTED_STREAM",
        sql=tokens.sql,
        span=tokens.span(*one.range),
        hint=hint,
    )
