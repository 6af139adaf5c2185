"""A SELECT in a subquery hands lists of rows on to the subqueries in it: Spark sees one query around.

    SELECT … FROM t WHERE t.x IN (… f.d …)
    →   SELECT … FROM (SELECT f.d AS d) AS __lists1, t WHERE t.x IN (… __lists1.d …)

Beside groups, a list is one more key, which makes no further groups. Without keys there is a row also where
there are no rows, so the aggregates are a query in FROM; so are arguments of aggregates, row by row:

    SELECT … FROM t GROUP BY k HAVING k IN (… f.d …)
    →   … FROM (SELECT f.d AS d) AS __lists1, t GROUP BY k, __lists1.d HAVING k IN (… __lists1.d …)

    SELECT COUNT(*) IN (… f.d …) FROM t
    →   SELECT __groups1.c0 IN (… __lists1.d …)
        FROM (SELECT f.d AS d) AS __lists1, (SELECT COUNT(*) AS c0 FROM t) AS __groups1

    SELECT SUM(IF(x IN (… f.d …), 1, 0)) FROM t
    →   SELECT SUM(__computed1.c0) FROM (SELECT f.d AS d) AS __lists1, t, LATERAL (
            SELECT IF(x IN (… __lists1.d …), 1, 0) AS c0
            FROM (SELECT __lists1.d) AS __lists1, (SELECT t.*) AS t) AS __computed1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from windrow.algebra.aggregate_calls import calls_aggregate, places_of_calls
from windrow.algebra.names import POSITIONAL
from windrow.algebra.qualified import relations_of
from windrow.errors import NotSupportedError
from windrow.syntax.nodes import Range, is_within
from windrow.syntax.patterns.match_relations import parameter_marks
from windrow.syntax.query_parts import is_set_operator
from windrow.syntax.select_list import without_distinct
from windrow.syntax.sqltext import quoted
from windrow.syntax.subqueries import own_relations
from windrow.syntax.tokens import TokenList

__all__ = ["HandedOn", "Words", "handing_on"]

_LISTS, _GROUPS, _COMPUTED = "__lists", "__groups", "__computed"
_BEGIN = {"SELECT", "FROM", "WHERE", "HAVING", "QUALIFY", "LIMIT", "OFFSET"}
_BEGIN_BY = {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"}
_OVER_GROUPS = ("SELECT", "HAVING", "QUALIFY", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE")
_JOIN_WORDS = {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "LATERAL"}
_OUTER_JOINS = ("LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI")


class Words:
    """What stands in places of a text; of nested places the outermost count."""

    def __init__(self, tokens: TokenList) -> None:
        self.tokens = tokens
        # texts are moved, and Spark counts parameters in their order
        marks = enumerate(parameter_marks(tokens))
        self.at: dict[Range, str] = {(at, at + 1): f":{POSITIONAL}{number}" for number, at in marks}

    def outermost(self, start: int, stop: int) -> Iterator[Range]:
        """The places in a stretch that are in no other one."""
        last = start
        for one in sorted(self.at, key=lambda one: (one[0], -one[1])):
            if one[0] >= last and one[1] <= stop:
                yield one
                last = one[1]

    def text(self, start: int, stop: int) -> str:
        """A stretch of the text."""
        parts, last = [], self.tokens.span(start, stop).start
        for one in self.outermost(start, stop):
            span = self.tokens.span(*one)
            parts += [self.tokens.sql[last : span.start], self.at[one]]
            last = span.stop
        return "".join([*parts, self.tokens.sql[last : self.tokens.span(start, stop).stop]])

    def put(self, place: Range, before: str = "", after: str = "") -> None:
        """Put texts around a token, or around the place that it begins or ends."""
        at, stop = place
        inside = (one for one in self.outermost(0, len(self.tokens)) if one[0] <= at and stop <= one[1])
        where = next(inside, place)
        self.at[where] = before + self.text(*where) + after


@dataclass
class HandedOn:
    """The lists that a SELECT has in FROM, for the subqueries in it.

    Attributes
    ----------
    begins
        Where its clauses begin, by their first words, and where it ends, by an empty one.
    level
        The SELECT's own subqueries have so many between them and the rows of the clause.
    around
        The relation with the lists in the query around; None where these are fields of the clause's row.
    join
        The word ON where the subqueries stand behind it.
    fields
        The fields of the lists, in their order.
    queries
        The subqueries that read them.
    """

    tokens: TokenList
    begins: dict[str, int]
    level: int
    around: str | None
    join: int | None
    fields: dict[str, None] = field(default_factory=dict)
    queries: list[Range] = field(default_factory=list)

    @property
    def relation(self) -> str:
        """The relation with the lists."""
        return quoted(f"{_LISTS}{self.level}" + ("" if self.join is None else f"_{self.join}"))

    def part(self, word: str) -> Range | None:
        """A clause without the words with which it begins."""
        if word not in self.begins:
            return None
        start = self.begins[word]
        stop = min(at for at in self.begins.values() if at > start)
        part = start + 1 + (word in _BEGIN_BY), stop
        return without_distinct(self.tokens, part) if word == "SELECT" else part

    def edit(self, words: Words, row: str) -> None:
        """Put the lists into the SELECT; `words` inside of it are there already."""
        items = self.part("SELECT")
        assert items is not None
        self._leave_out(words, items)
        lists = self._lists(row if self.around is None else f"{self.around}.")
        if self.join is not None:
            self._put_beside_join(words, self.join, lists)
            return
        source = f"FROM {lists}"
        if self.is_grouped():
            parts = [part for word in _OVER_GROUPS if (part := self.part(word)) is not None]
            calls = places_of_calls(self.tokens, parts)
            self._compute_arguments(words, calls)
            over = [
                one
                for one in self.queries
                if any(is_within(one, part) for part in parts)
                and not any(is_within(one, call) for call in calls)
            ]
            if over and not self._put_into_keys(words):
                inside = f" {lists}," if len(over) < len(self.queries) else ""
                source += f", {self._put_below(words, [*calls, *self._calls_in(over)], inside)}"
        if "FROM" not in self.begins:
            words.put((items[1] - 1, items[1]), after=f" {source}")
            return
        at = self.begins["FROM"]
        words.at[at, at + 1] = source if source.endswith((" FROM", ",")) else f"{source},"

    def _lists(self, before: str) -> str:
        columns = ", ".join(f"{before}{quoted(one)} AS {quoted(one)}" for one in self.fields)
        return f"(SELECT {columns}) AS {self.relation}"

    def _leave_out(self, words: Words, items: Range) -> None:
        """Leave the lists out of what stands for all columns, also in calls."""
        tokens, listed = self.tokens, ", ".join(map(quoted, self.fields))
        for at in range(*items):
            begins = at == items[0] or tokens.is_symbol(at - 1, ",") or tokens.is_symbol(at - 1, "(")
            is_count = tokens.word(at - 2) == "COUNT" and tokens.is_symbol(at + 1, ")")
            if tokens.is_symbol(at, "*") and begins and not is_count:
                is_rest = tokens.word(at + 1) == "EXCEPT"
                words.at[at, at + 1 + 2 * is_rest] = f"* EXCEPT ({listed}" + (", " if is_rest else ")")

    def is_grouped(self) -> bool:
        """Whether the SELECT has groups, or aggregates of all rows."""
        items = self.part("SELECT")
        assert items is not None
        return not {"GROUP", "HAVING"}.isdisjoint(self.begins) or calls_aggregate(self.tokens, items)

    # -- groups ------------------------------------------------------------------------------------

    def _put_into_keys(self, words: Words) -> bool:
        """Make the lists keys of the groups; False if these have none."""
        keys, items = self.part("GROUP"), self.part("SELECT")
        assert items is not None
        if keys is None:
            return False
        tokens = self.tokens
        lists = [f"{self.relation}.{quoted(one)}" for one in self.fields]
        if tokens.text(*keys).upper() != "ALL":
            words.put((keys[1] - 1, keys[1]), after=", " + ", ".join(lists))
            return True
        numbered = enumerate(tokens.split(*items), 1)
        of_rows = [str(number) for number, item in numbered if not calls_aggregate(tokens, item)]
        words.at[keys] = ", ".join([*of_rows, *lists])
        if not of_rows:
            words.at[self.begins["GROUP"], keys[1]] = ""
        return bool(of_rows)

    def _put_below(self, words: Words, calls: Sequence[Range], lists: str) -> str:
        """Make the aggregates of all rows a query with these lists, of which this is the beginning."""
        if self.begins["SELECT"] > self.begins.get("FROM", self.begins["SELECT"]):
            raise self.refused(self.queries[0], "begin the query around it with SELECT")
        below = quoted(f"{_GROUPS}{self.level}")
        names = [quoted(f"c{number}") for number, _ in enumerate(calls)]
        columns = [f"{self._moved(words, call)} AS {name}" for call, name in zip(calls, names, strict=True)]
        for call, name in zip(calls, names, strict=True):
            words.at[call] = f"{below}.{name}"
        rows = self.part("WHERE") or self.part("FROM") or self.part("SELECT")
        assert rows is not None
        after = f") AS {below}"
        if "HAVING" in self.begins:
            keys = [f"{below}.{name}" for name in names]
            keys += [f"{self.relation}.{quoted(one)}" for one in self.fields]
            after += " GROUP BY " + ", ".join(keys)
        begins = f"(SELECT {', '.join(columns or ['COUNT(*)'])}"
        if "FROM" not in self.begins:
            return begins + after
        words.put((rows[1] - 1, rows[1]), after=after)
        return f"{begins} FROM{lists}"

    def _calls_in(self, queries: Sequence[Range]) -> Iterator[Range]:
        """The aggregates of the SELECT in its subqueries: what they read are its own relations."""
        tokens = self.tokens
        source = self.part("FROM")
        relations = set() if source is None else set(relations_of(tokens, (source[0] - 1, source[1])))
        for start, stop in queries:
            own = {name.lower() for name in own_relations(tokens, (start, stop))}
            for call in places_of_calls(tokens, [(start + 1, stop - 1)]):
                read = {tokens[at].name.lower() for at in range(*call) if tokens.is_symbol(at + 1, ".")}
                if read and read <= relations - own:
                    yield call

    def _compute_arguments(self, words: Words, calls: Sequence[Range]) -> None:
        """Compute the arguments of aggregates that have subqueries, row by row."""
        tokens, inside = (
            self.tokens,
            [one for one in self.queries if any(is_within(one, call) for call in calls)],
        )
        places = list(dict.fromkeys(self._argument(one, calls) for one in inside))
        source = self.part("FROM")
        if not places or source is None:
            return
        if any(tokens.word(at) == "VIEW" for at in tokens.level(*source)):
            raise self.refused(inside[0], "put LATERAL VIEW in a subquery in FROM")
        computed = quoted(f"{_COMPUTED}{self.level}")
        names = [quoted(f"c{number}") for number, _ in enumerate(places)]
        columns = [f"{self._moved(words, one)} AS {name}" for one, name in zip(places, names, strict=True)]
        rows = [f"(SELECT {self.relation}.*) AS {self.relation}"]
        for name in dict.fromkeys(map(quoted, relations_of(tokens, (source[0] - 1, source[1])))):
            rows.append(f"(SELECT {name}.*) AS {name}")
        lateral = f", LATERAL (SELECT {', '.join(columns)} FROM {', '.join(rows)}) AS {computed}"
        words.put((source[1] - 1, source[1]), after=lateral)
        for one, name in zip(places, names, strict=True):
            words.at[one] = f"{computed}.{name}"

    def _argument(self, query: Range, calls: Sequence[Range]) -> Range:
        """The argument of an aggregate, or its FILTER, in which a subquery stands."""
        tokens = self.tokens
        call = next(one for one in calls if is_within(query, one))
        close = tokens.partner[call[0] + 1]
        parts = tokens.split(*without_distinct(tokens, (call[0] + 2, close)))
        if tokens.word(close + 1) == "FILTER":
            parts.append((close + 4, tokens.partner[close + 2]))
        found = next((one for one in parts if is_within(query, one)), None)
        if found is None:
            raise self.refused(query, "compute it in a subquery in FROM")
        return found

    def _moved(self, words: Words, place: Range) -> str:
        """The text of a place, for another one."""
        return words.text(*place)

    # -- joins -------------------------------------------------------------------------------------

    def _put_beside_join(self, words: Words, on: int, lists: str) -> None:
        """Put the lists beside the relation of a join that its condition reads with them."""
        tokens, source = self.tokens, self.part("FROM")
        assert source is not None
        own = tokens.level(*source)
        join = max((at for at in own if at < on and tokens.word(at) == "JOIN"), default=None)
        if join is None or any(tokens.word(join - back) in _OUTER_JOINS for back in (1, 2)):
            raise self.refused(self.queries[0], "put it in WHERE, or in a subquery in FROM")
        right = set(relations_of(tokens, (join, on)))
        ends = [at for at in own if at > on and (tokens.word(at) in _JOIN_WORDS or tokens.is_symbol(at, ","))]
        stop = min(ends, default=source[1])
        cuts = [on, *(at for at in own if on < at < stop and tokens.word(at) == "AND"), stop]
        parts = [(start + 1, end) for start, end in pairwise(cuts)]
        read = [one for one in parts if any(is_within(query, one) for query in self.queries)]
        names = {
            tokens[at].name.lower() for one in read for at in range(*one) if tokens.is_symbol(at + 1, ".")
        }
        if names.isdisjoint(right):
            first = max((at + 1 for at in own if at < join and tokens.is_symbol(at, ",")), default=source[0])
            words.put((first, first + 1), before=f"{lists} CROSS JOIN ")
            return
        words.put((join + 1, join + 2), before="(")
        words.put((on - 1, on), after=f" CROSS JOIN {lists})")

    def refused(self, query: Range, hint: str) -> NotSupportedError:
        """The error of a subquery to which no list can be handed on."""
        return _refused(self.tokens, query, hint)


def handing_on(tokens: TokenList, query: Range, level: int, around: str | None) -> HandedOn:
    """The SELECT around a subquery, which hands lists on to it.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` in a pipe that is no SELECT (:func:`.subqueries_of_clauses`).
    """
    at = query[0]
    while (parent := tokens.parent[at]) >= 0 and tokens.word(parent + 1) not in ("SELECT", "WITH", "FROM"):
        at = parent
    level_of_query = [
        one for one in tokens.level(parent + 1, tokens.partner[parent]) if tokens.parent[one] == parent
    ]
    sets = [one for one in level_of_query if is_set_operator(tokens, one)]
    first = max((one for one in sets if one < at), default=parent)
    stop = min((one for one in sets if one > at), default=tokens.partner[parent])
    own = [one for one in level_of_query if first < one < stop]
    begins: dict[str, int] = {}
    for one in own:
        if _begins_clause(tokens, one):
            begins.setdefault(tokens.word(one), one)
    is_pipe = any(tokens.is_symbol(one, "|>") for one in own)
    pivots = not {tokens.word(one) for one in own}.isdisjoint(("PIVOT", "UNPIVOT"))
    if "SELECT" not in begins or is_pipe or pivots:
        raise _refused(tokens, query, "put the inner subquery in WHERE, or in FROM")
    begins[""] = stop
    made = HandedOn(tokens, begins, level, around, None)
    source = made.part("FROM")
    if source is not None and is_within(query, source) and tokens.word(query[0] - 1) != "LATERAL":
        made.join = max(
            (one for one in own if source[0] < one < at and tokens.word(one) == "ON"), default=None
        )
        if made.join is None:
            raise _refused(tokens, query, "put it in WHERE, or in a subquery in FROM")
    return made


def _begins_clause(tokens: TokenList, at: int) -> bool:
    word, before = tokens.word(at), tokens.word(at - 1)
    if tokens.is_symbol(at - 1, ".") or before == "AS":
        return False
    if word == "FROM" and before == "DISTINCT":
        return tokens.word(at - 2) not in ("IS", "NOT")
    if word == "WINDOW":
        return tokens.word(at + 2) == "AS"
    return word in _BEGIN or (word in _BEGIN_BY and tokens.word(at + 1) == "BY")


def _refused(tokens: TokenList, query: Range, hint: str) -> NotSupportedError:
    return NotSupportedError(
        "a subquery over a relation that changes over time is not supported here,"
        " in a subquery of a clause over windows of time",
        condition="UNSUPPORTED_STREAM",
        sql=tokens.sql,
        span=tokens.span(*query),
        hint=hint,
    )
