"""Time-varying subqueries of a clause: their values are joined with the rows of the clause.

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
query around it, so a list that is read further inside is handed on by each query in between
(:mod:`windrow.algebra.rewriting.lists_in_queries`).

A subquery after IN that reads no query around is a list too:

    … AND o.x IN (SELECT x FROM p [RANGE 9])
    →   … AND o.x IN (SELECT inline(__lists1.d))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from windrow.algebra.names import OUTER, QUALIFIED, ROW, of_relation
from windrow.algebra.rewriting.lists_in_queries import HandedOn, Words, handing_on
from windrow.algebra.rewriting.outer_references import ColumnsOf
from windrow.algebra.scopes import scopes
from windrow.algebra.window_node import WindowFragment
from windrow.errors import NotSupportedError, Span
from windrow.syntax.cql_clauses import alias_after, begins_relation, window_at
from windrow.syntax.expression_nodes import Name
from windrow.syntax.nodes import Cte, Range, is_within
from windrow.syntax.operands import is_of_lambda, may_be_operand
from windrow.syntax.query_parts import is_set_operator, visible_ctes
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import opens_query, own_relations, subqueries
from windrow.syntax.tokens import TokenList

__all__ = ["VaryingValues", "reads_varying", "refuse_varying", "varying_values"]

_ROWS, _VALUES = "__rows", "__varying"
_AFTER_OPERANDS = ("ORDER", "LIMIT", "OFFSET")


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
    """A value that replaces a part of the clause: of a subquery, or a list of rows.

    `relation` is the name that a relation of such rows has where no alias follows it, and empty with one, and
    for a subquery after IN; None of a subquery for one value. `lists` is the relation that hands the value on
    to the place, None in a subquery of the clause itself.
    """

    range: Range
    field: str
    relation: str | None
    lists: str | None = None

    def text(self, row: str) -> str:
        """The SQL in its place, with the row before the field."""
        value = f"{row if self.lists is None else f'{self.lists}.'}{quoted(self.field)}"
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
    handed_on
        The SELECTs that hand lists on to subqueries.
    """

    tokens: TokenList
    values: tuple[VaryingValue, ...]
    queries: dict[str, SqlText]
    handed_on: tuple[HandedOn, ...] = ()

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
        """The SQL for Spark in a stretch."""
        return self.words(part, f"{quoted(QUALIFIED + row)}.")

    def words(self, part: Range, row: str) -> dict[Range, str]:
        """The SQL in places of a stretch, with the row before a field."""
        words = Words(self.tokens)
        words.at |= {value.range: value.text(row) for value in self.inside(part)}
        for one in self.handed_on:
            if part[0] <= one.begins["SELECT"] < part[1]:
                one.edit(words, row)
        return {place: words.at[place] for place in words.outermost(*part)}

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
    lengths: Sequence[Range] = (),
    columns_of: ColumnsOf | None = None,
) -> VaryingValues | None:
    """The values of the subqueries in these parts of a clause that begins at a token; None without any.

    `varying` are relations of the session that do. `rows` are the names by which a subquery reads rows; None
    where it may read them by other names too. All are in lower case. A subquery that reads none is a value,
    or a list after IN, as are all in `lengths`; else each relation in it is a list. With `columns_of`, names
    without a relation may be columns of the query around a subquery.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for a relation in a subquery of a subquery that reads rows of the clause, or in
        places of this one where no list can be handed on.
    """
    finder = _Finder(tokens, varying, columns_of)
    values: list[VaryingValue] = []
    queries: dict[str, SqlText] = {}
    fields: dict[tuple[str, ...], str] = {}
    handed_on: dict[tuple[int, int | None], HandedOn] = {}
    for place, name, between in (*finder.places(parts, rows), *finder.places(lengths, ())):
        known = tokens.folded(*place)
        if known not in fields:
            what = "subquery" if name is None else "rows"
            fields[known] = of_relation(f"{OUTER}{at}", f"{what}{len(fields)}")
            query = text(*place)
            if name is not None:
                query = SqlText.of("(SELECT sort_array(collect_list(struct(*))) FROM ", query, ")")
            queries[fields[known]] = query
        lists = None
        for level, inner in enumerate(between, 1):
            made = handing_on(tokens, inner, level, lists)
            made = handed_on.setdefault((made.begins["SELECT"], made.join), made)
            made.fields[fields[known]] = None
            if inner not in made.queries:
                made.queries.append(inner)
            lists = made.relation
        values.append(VaryingValue(place, fields[known], name, lists))
    inner_first = sorted(handed_on.values(), key=lambda one: (-one.level, one.join is None))
    return VaryingValues(tokens, tuple(values), queries, tuple(inner_first)) if values else None


class _Finder:
    """Finds what values replace in the subqueries of a clause; `varying` are relations of the session that
    change over time.
    """

    def __init__(self, tokens: TokenList, varying: Collection[str], columns_of: ColumnsOf | None) -> None:
        self.tokens, self.varying, self.columns_of = tokens, varying, columns_of
        self.known: dict[Range, list[str] | None] = {}

    def places(
        self, parts: Sequence[Range], rows: Collection[str] | None
    ) -> Iterator[tuple[Range, str | None, Sequence[Range]]]:
        """The stretches that values stand for, of lists their names, and the subqueries in between."""
        tokens = self.tokens
        for start, stop in (query for part in parts for query in subqueries(tokens, part)):
            inside = _find(tokens, (start, stop), self.varying)
            if not inside:
                continue
            words = {tokens[at].name.lower() for at in range(start, stop) if tokens[at].is_name}
            if rows is not None and words.isdisjoint(rows):
                yield *_whole(tokens, (start, stop)), ()
                continue
            deeper = start
            for one in inside:
                if one.range[0] < deeper:
                    continue  # a value replaces it
                if one.cte is None or one.cte.item[0] < start:
                    between = _subqueries_with(tokens, one, start)
                    if between and not self.is_dependent(one, between[0], inside, rows or ()):
                        deeper = between[0][1]
                        place, name = _whole(tokens, between[0])
                        yield place, name, () if name is None else between[:1]
                        continue
                    has_alias = alias_after(tokens, one.range[1], stop) is not None
                    is_name = tokens[one.range[0]].is_name
                    yield one.range, tokens[one.range[0]].name if is_name and not has_alias else "", between

    def is_dependent(
        self, one: _Relation, inner: Range, beside: Sequence[_Relation], rows: Collection[str]
    ) -> bool:
        """Whether an inner subquery is no value, as it reads the one around it.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_STREAM`` where it reads `rows`: Spark sees one query around.
        """
        tokens = self.tokens
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
        return (
            not read.isdisjoint(named)
            or tokens.word(inner[0] - 1) == "LATERAL"
            or any(self.is_of_query_around(at, inner) for at in range(*inner))
        )

    def is_of_query_around(self, at: int, inner: Range) -> bool:
        """Whether a name without a relation is no column of the subquery in which it stands."""
        tokens = self.tokens
        if self.columns_of is None or not may_be_operand(tokens, at) or is_of_lambda(tokens, at):
            return False
        name = tokens[at].name.lower()
        for scope in scopes(tokens, at, ()):
            if tokens.parent[scope.at] < inner[0]:
                break
            if scope.columns is None or name in scope.names:
                return False
            if scope.columns not in self.known:
                found = self.columns_of(scope.columns, None)
                self.known[scope.columns] = None if found is None else [one.lower() for one in found]
            columns = self.known[scope.columns]
            if columns is not None and name in columns:
                return False
        return True


def _whole(tokens: TokenList, query: Range) -> tuple[Range, str | None]:
    """The place of a subquery that is a value, with EXISTS; after IN it is a list, which has no name."""
    return (query, "") if tokens.word(query[0] - 1) == "IN" else (_operand(tokens, query), None)


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
        if tokens.parent[at] == at - 1 and opens_query(tokens, at):
            after = tokens.partner[at] + 1
            is_operand |= is_set_operator(tokens, after) or tokens.word(after) in _AFTER_OPERANDS
        if opens_query(tokens, at) and not (
            begins_relation(tokens, at) or tokens.word(at - 1) == "AS" or is_operand
        ):
            found.append((at, tokens.partner[at] + 1))
        at = tokens.parent[at]
    return found[::-1]


def _name(tokens: TokenList, one: _Relation) -> str:
    """The name by which columns of a relation are read, in lower case."""
    alias = alias_after(tokens, one.range[1], len(tokens))
    return tokens[one.range[0] if alias is None else alias].name.lower()


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
