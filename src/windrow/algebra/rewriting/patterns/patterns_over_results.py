"""Windows of OVER with patterns over groups, and beside WINDOW BY, as SELECTs around these.

    SELECT k, COUNT(*) AS n, m OVER p FROM t GROUP BY k WINDOW p AS (… PATTERN …)
      →  SELECT k, n, m OVER p FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) WINDOW p AS (… PATTERN …)

Expressions that read the rows before the clause become columns of the nested query: keys, aggregates,
variables of WINDOW BY, and whole items of SELECT without OVER. Around it, the columns replace them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from windrow.algebra.aggregate_calls import calls_aggregate, find_aggregates, find_calls
from windrow.algebra.names import piece_of, verbatim
from windrow.algebra.qualified import relations_of
from windrow.algebra.row_comparison import comparisons_of_rows, rows_of_case
from windrow.syntax.nodes import Range, WindowClause
from windrow.syntax.patterns.match_nodes import variable_name
from windrow.syntax.patterns.pattern_windows import PatternBlock, PatternWindow, find_pattern_windows
from windrow.syntax.patterns.row_patterns import variables_of
from windrow.syntax.query_parts import clause_words, grouping_keys
from windrow.syntax.select_list import aliased, without_alias
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.subqueries import subqueries
from windrow.syntax.tokens import TokenKind, TokenList
from windrow.syntax.window_by_clause import parse_window_by

__all__ = ["QueryAround", "patterns_around"]

_HIDDEN = "__inside"
_BEGINS, _ENDS = {"BY", "WHEN", "THEN", "ELSE"}, {"AS", "ASC", "DESC", "NULLS", "WHEN", "THEN", "ELSE", "END"}


def patterns_around(tokens: TokenList) -> SqlText | None:
    """The text with the first such SELECT split in two; None if there is none.

    The resulting text may have further ones.

    Raises
    ------
    ParseError, AnalysisError, NotSupportedError
        As `find_pattern_windows` and `comparisons_of_rows`.
    """
    query = next((one for one in find_pattern_windows(tokens) if one.made_by is not None), None)
    if query is None:
        return None
    around = QueryAround(tokens, query)
    start, stop = tokens.span(*query.range).start, tokens.span(*query.range).stop
    return SqlText.of(verbatim(tokens, 0, start), around.text(), verbatim(tokens, stop, len(tokens.sql)))


@dataclass
class QueryAround:
    """A SELECT, the columns of the nested query by name, and the substitutes for parts around it."""

    tokens: TokenList
    query: PatternBlock
    columns: dict[str, SqlText] = field(default_factory=dict)
    replaced: dict[Range, str] = field(default_factory=dict)
    paths: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The columns that have what is read of variables of WINDOW BY, by what is said of these."""
    name: str = ""
    """The name of the nested query, as SQL; empty for none."""

    def text(self) -> SqlText:
        """The SELECT around the nested query."""
        tokens, query = self.tokens, self.query
        assert query.made_by is not None
        is_grouped = tokens.word(query.made_by) in ("GROUP", "HAVING")
        clause = None if is_grouped else parse_window_by(tokens, query.made_by)
        first = query.select[0] + (tokens.word(query.select[0]) in ("DISTINCT", "ALL"))
        items = tokens.split(first, query.select[1])
        stars = [item for item in items if self.is_star(item)]
        whole = [item for item in items if item not in stars and not self.has_over(item)]
        named = self.names_of(whole)
        self.take_keys(named)
        outside = [item for item in items if item not in whole and item not in stars]
        outside.append(self.after())
        if clause is not None:
            self.take_window(outside, clause, set(named.values()))
        else:
            ranges = self.without_patterns(outside)
            calls = [*self.calls_over_rows(ranges), *self.grouping_calls(ranges)]
            self.take_calls(sorted(calls))
        selected = [self.whole_item(item, named) if item in whole else self.around(item) for item in items]
        for star in stars:
            selected[items.index(star)] = self.star(star)
        inside = [self.piece(star) for star in stars]
        inside += [SqlText.of(text, " AS ", quoted(name)) for name, text in self.columns.items()]
        distinct = tokens.word(query.select[0]) + " " if first > query.select[0] else ""
        return SqlText.of(
            f"SELECT {distinct}",
            SqlText.join(", ", selected),
            " FROM (SELECT ",
            SqlText.join(", ", inside or [SqlText.of(f"1 AS {_HIDDEN}0")]),
            " ",
            self.source(items),
            f") {f'AS {self.name} ' if self.name else ''}",
            self.written(self.after()),
        )

    # -- the parts of the SELECT --------------------------------------------------------------------

    def after(self) -> Range:
        """The part after the nested query: the windows, QUALIFY, and the rest."""
        return self.query.source[1], self.query.range[1]

    def source(self, items: list[Range]) -> SqlText:
        """FROM and the following clauses, with items of SELECT for numbers in GROUP BY."""
        tokens, (start, stop) = self.tokens, self.query.source
        parts: list[SqlText] = []
        for key in self.keys():
            item = self.item_of_number(key, items)
            if item is not None:
                parts += [self.piece((start, key[0])), self.piece(without_alias(tokens, item))]
                start = key[1]
        return SqlText.of(*(SqlText.of(part, " ") for part in (*parts, self.piece((start, stop)))))

    def item_of_number(self, key: Range, items: list[Range]) -> Range | None:
        """The item of SELECT for a number in GROUP BY."""
        number = int(self.tokens[key[0]].text) if self.is_number(key) else 0
        known = 1 <= number <= len(items) and not self.has_over(items[number - 1])
        return items[number - 1] if known else None

    def keys(self) -> list[Range]:
        """The expressions of GROUP BY: of rows, or of the windows of WINDOW BY."""
        tokens, (start, stop) = self.tokens, self.query.source
        assert self.query.made_by is not None
        is_grouped = tokens.word(self.query.made_by) == "GROUP"
        first = self.query.made_by if is_grouped else tokens.partner.get(self.query.made_by + 4, start)
        own = [at for at in tokens.level(start, stop) if at >= first]
        marks = clause_words(tokens, [start, *own])
        if "GROUP" not in marks or tokens.word(self.query.made_by) == "HAVING":
            return []
        having = marks.get("HAVING", stop)
        end = having if having > marks["GROUP"] else stop
        listed = (marks["GROUP"] + 2, end)
        if tokens.text(*listed).upper() == "ALL":
            return []
        return [key for item in tokens.split(*listed) for key in grouping_keys(tokens, *item)]

    def is_star(self, item: Range) -> bool:
        """Whether an item stands for several columns."""
        return any(self.tokens.is_symbol(at, "*") for at in (item[0], item[0] + 2) if at < item[1]) and (
            self.tokens.is_symbol(item[0], "*") or self.tokens.is_symbol(item[0] + 1, ".")
        )

    def has_over(self, item: Range) -> bool:
        """Whether a window of OVER is called in an item, outside of its subqueries."""
        return any(
            self.tokens.word(at) == "OVER" and not self.tokens.is_symbol(at - 1, ".")
            for part in self.outside_of(item, subqueries(self.tokens, item))
            for at in range(*part)
        )

    def names_of(self, items: list[Range]) -> dict[Range, str]:
        """The names that only one item has, by which the windows read them."""
        names = {item: self.name_of(item) for item in items}
        known = [name.lower() for name in names.values() if name is not None]
        return {
            item: name for item, name in names.items() if name is not None and known.count(name.lower()) == 1
        }

    def name_of(self, item: Range) -> str | None:
        """The alias of an item, or the last part of its path; None without either."""
        is_named = without_alias(self.tokens, item) != item or self.is_path(item)
        return self.tokens[item[1] - 1].name if is_named else None

    def is_path(self, part: Range) -> bool:
        """Whether a range is a name, qualified or not."""
        start, stop = part
        return (stop - start) % 2 == 1 and all(
            self.tokens.is_symbol(at, ".") if (at - start) % 2 else self.tokens[at].is_name
            for at in range(start, stop)
        )

    # -- the columns of the query inside -----------------------------------------------------------

    def whole_item(self, item: Range, named: dict[Range, str]) -> SqlText:
        """An item that the nested query computes, for the outer SELECT."""
        tokens = self.tokens
        name = named.get(item)
        if name is None:
            name = self.hide(self.piece(without_alias(tokens, item)))
        elif name.lower() not in (known.lower() for known in self.columns):
            self.columns[name] = self.piece(without_alias(tokens, item))
        shown = self.name_of(item) or tokens.text(*item)
        return SqlText.of(self.stands(item, quoted(name)), f" AS {quoted(shown)}")

    def take_keys(self, named: dict[Range, str]) -> None:
        """Make columns of the keys, and substitute them where the keys are read.

        Items that are a different column with the same name lose their name.
        """
        tokens, relations = self.tokens, self.sole_relation()
        keys = [key for key in self.keys() if key[0] < key[1] and not self.is_number(key)]
        last = [tokens[key[1] - 1].name.lower() for key in keys if self.is_path(key)]
        for key in keys:
            name = tokens[key[1] - 1].name if self.is_path(key) else ""
            item = next((one for one, its in named.items() if its.lower() == name.lower()), None)
            if item is not None and key[1] - key[0] == 1 and self.may_be_meant(item):
                continue
            said = self.said(key, relations)
            if not name or last.count(name.lower()) > 1:
                name = self.hide(self.piece(key))
            else:
                self.columns.setdefault(name, self.piece(key))
                if item is not None and self.said(without_alias(tokens, item), relations) != said:
                    del named[item]
            for place in self.places(key, relations):
                self.replaced[place] = quoted(name)

    def may_be_meant(self, item: Range) -> bool:
        """Whether GROUP BY may refer to an item by its alias: if it is not a column, and not an aggregate."""
        tokens, expression = self.tokens, without_alias(self.tokens, item)
        name = tokens[item[1] - 1].name.lower()
        mentioned = (tokens[at].name.lower() for at in range(*expression) if tokens[at].is_name)
        return expression != item and name not in mentioned and not calls_aggregate(tokens, item)

    def is_number(self, key: Range) -> bool:
        """Whether a key is a number, which refers to an item of SELECT."""
        token = self.tokens[key[0]]
        return key[1] - key[0] == 1 and token.kind is TokenKind.NUMBER and token.text.isdigit()

    def sole_relation(self) -> frozenset[str]:
        """The name of the only relation of FROM, with which a column is the same as without it."""
        found = list(relations_of(self.tokens, self.query.source))
        return frozenset(found if len(found) == 1 else ())

    def said(self, part: Range, relations: frozenset[str]) -> tuple[str, ...]:
        """The normal form of a range, regardless of whether columns have a qualifier."""
        words = self.tokens.folded(*part)
        if self.is_path(part) and len(words) > 1 and self.tokens[part[0]].name.lower() in relations:
            return words[2:]
        return words

    def places(self, key: Range, relations: frozenset[str]) -> Iterator[Range]:
        """The positions where a key is read around the nested query: a path anywhere, other expressions as
        whole operands.
        """
        tokens, said, is_path = self.tokens, self.said(key, relations), self.is_path(key)
        lengths = {len(said), len(said) + 2} if is_path and relations else {key[1] - key[0]}
        is_call = tokens.is_symbol(key[1] - 1, ")") and tokens.partner[key[1] - 1] in (key[0], key[0] + 1)
        for part in self.stretches([self.query.select, self.after()]):
            for start, stop in self.outside_of(part, subqueries(tokens, part)):
                for at in range(start, stop):
                    for end in (at + length for length in sorted(lengths, reverse=True)):
                        if end > stop or self.said((at, end), relations) != said:
                            continue
                        is_whole = self.begins_operand(at, part) and self.ends_operand(end, part)
                        inside = tokens.is_symbol(at - 1, ".") or tokens.is_symbol(end, "(")
                        if not inside and (is_path or is_call or is_whole) and not self.is_variable(at):
                            yield at, end

    def begins_operand(self, at: int, part: Range) -> bool:
        """Whether nothing before a token can use it as an operand."""
        before = self.tokens.is_symbol(at - 1, "(") or self.tokens.is_symbol(at - 1, ",")
        return before or at == part[0] or self.tokens.word(at - 1) in _BEGINS

    def ends_operand(self, at: int, part: Range) -> bool:
        """Whether nothing that begins at a token can use the text before as an operand."""
        after = self.tokens.is_symbol(at, ")") or self.tokens.is_symbol(at, ",")
        return after or at == part[1] or self.tokens.word(at) in _ENDS

    def is_variable(self, at: int) -> bool:
        """Whether a name before a column is a variable of the pattern around it."""
        if not self.tokens.is_symbol(at + 1, ".") or not self.tokens[at].is_name:
            return False
        name = variable_name(self.tokens[at])
        for window in self.query.windows:
            clause = window.clause
            named = (item.expression for item in (*clause.measures, *clause.defines))
            if _is_in((at, at + 1), named):
                return name in {*variables_of(clause.pattern), *(one.name for one in clause.subsets)}
        return False

    def take_calls(self, calls: Iterable[Range]) -> None:
        """Make columns of the aggregates that the nested query computes."""
        by_text: dict[tuple[str, ...], str] = {}
        for call in calls:
            said = (*self.tokens.folded(*call), *map(str, self.marks(call)))
            if said not in by_text:
                by_text[said] = self.hide(self.piece(call))
            self.replaced[call] = quoted(by_text[said])

    def calls_over_rows(self, ranges: list[Range]) -> list[Range]:
        """Where aggregates stand that the query inside computes."""
        return list(find_calls(self.tokens, ranges, self.piece))

    def grouping_calls(self, ranges: list[Range]) -> Iterator[Range]:
        """The positions of functions that return which keys a group has."""
        tokens = self.tokens
        for start, stop in ranges:
            for at in range(start, stop):
                if tokens.word(at) in ("GROUPING", "GROUPING_ID") and tokens.is_symbol(at + 1, "("):
                    yield at, tokens.partner[at + 1] + 1

    def marks(self, part: Range) -> list[int]:
        """The positions of unnamed parameters: each has a separate value."""
        return [at for at in range(*part) if self.tokens.is_symbol(at, "?")]

    def take_window(self, outside: list[Range], clause: WindowClause, names: set[str]) -> None:
        """Make columns of the expressions that read the windows and variables of WINDOW BY."""
        tokens = self.tokens
        ranges = self.without_patterns(outside)
        variables = [variable.name for variable in clause.variables()]
        self.take_comparisons(self.stretches(outside), clause)
        grouped = bool(self.keys())
        calls = self.calls_over_rows(ranges)
        aggregates = find_aggregates(tokens, ranges, clause.name, variables, self.piece, {})
        calls += [] if grouped else [at for at in aggregates.at if not _is_in(at, calls)]
        self.take_calls(sorted(calls))
        known = {name.lower() for name in (*variables, clause.name)} - {name.lower() for name in names}
        relations = set(relations_of(tokens, self.query.source))
        for part in self.stretches(outside):
            for start, stop in self.outside_of(part, [*self.replaced, *subqueries(tokens, part)]):
                for at in range(start, stop):
                    path = self.path(at, stop, relations)
                    is_one = path is not None and tokens[at].name.lower() in known
                    if path is None or not is_one or self.is_variable(at) or self.is_alias(at):
                        continue
                    self.replaced[path] = quoted(self.column_of(path))

    def column_of(self, path: Range) -> str:
        """The column that has what is read of a variable."""
        said = self.tokens.folded(*path)
        if said not in self.paths:
            self.paths[said] = self.hide(self.piece(path))
        return self.paths[said]

    def take_comparisons(self, parts: list[Range], clause: WindowClause) -> None:
        """Make columns of comparisons of rows.

        CASE around a function of a window with a pattern is ``CASE WHEN column THEN``.
        """
        tokens = self.tokens
        for comparison in comparisons_of_rows(tokens, parts, clause):
            if not self.has_over(comparison):
                self.replaced[comparison] = quoted(self.hide(self.piece(comparison)))
                continue
            row, *branches = rows_of_case(tokens, comparison)
            self.replaced[row] = ""
            for branch in branches:
                equal = SqlText.of(self.piece(row), " = ", self.piece(branch))
                is_null = tokens.word(branch[0]) == "NULL"
                self.replaced[branch] = "FALSE" if is_null else quoted(self.hide(equal))
            self.take_comparisons(self.outside_of((row[1], comparison[1]), branches), clause)

    def path(self, at: int, stop: int, relations: set[str]) -> Range | None:
        """A variable that begins at a token, with its column, which may be qualified."""
        tokens = self.tokens
        if not tokens[at].is_name or tokens.is_symbol(at - 1, ".") or tokens.is_symbol(at + 1, "("):
            return None
        end, most = at + 1, 2
        while end + 1 < stop and tokens.is_symbol(end, ".") and tokens[end + 1].is_name and most:
            most = 1 if tokens[end + 1].name.lower() in relations and most == 2 else 0
            end += 2
        return at, end

    def is_alias(self, at: int) -> bool:
        """Whether a name is an alias, or that of a window."""
        before = self.tokens.word(at - 1)
        is_path = self.tokens.is_symbol(at + 1, ".")
        in_pattern = self.in_window((at, at + 1))
        return not in_pattern and (before in ("OVER", "WINDOW") or (before == "AS" and not is_path))

    def hide(self, text: SqlText) -> str:
        """The name of a new column, which no one else reads."""
        name = f"{_HIDDEN}{len(self.columns)}"
        self.columns[name] = text
        return name

    def without_patterns(self, parts: list[Range]) -> list[Range]:
        """The parts without windows with patterns, except their PARTITION BY and ORDER BY."""
        inside = [self.keys_of(window) for window in self.query.windows if _is_in(window.range, parts)]
        return sorted([*self.beside_windows(parts), *(part for one in inside for part in one)])

    def stretches(self, parts: list[Range]) -> list[Range]:
        """The parts, with all expressions of windows with patterns."""
        found = self.beside_windows(parts)
        for window in self.query.windows:
            if _is_in(window.range, parts):
                named = (*window.clause.measures, *window.clause.defines)
                found += [*self.keys_of(window), *(item.expression for item in named)]
                found += [window.clause.within.tokens] if window.clause.within is not None else []
        return sorted(found)

    def keys_of(self, window: PatternWindow) -> list[Range]:
        """The expressions of PARTITION BY and ORDER BY; those of a named window are listed there."""
        clause = window.clause
        keys = [*clause.partition_by, *(item.expression for item in clause.order_by)]
        return [key for key in keys if _is_in(key, [window.range])]

    def beside_windows(self, parts: list[Range]) -> list[Range]:
        """The ranges outside of windows with patterns."""
        windows = [window.range for window in self.query.windows]
        return [found for part in parts for found in self.outside_of(part, windows)]

    def outside_of(self, part: Range, holes: Iterable[Range]) -> list[Range]:
        """The rest of a range, without some parts."""
        found, (at, stop) = [], part
        for start, end in sorted(holes):
            if start >= stop or end <= at:
                continue
            if at < start:
                found.append((at, start))
            at = end
        return [*found, (at, stop)] if at < stop else found

    # -- text --------------------------------------------------------------------------------------

    def star(self, item: Range) -> SqlText:
        """A star over all output of the nested query, except columns that are only read."""
        tokens, names = self.tokens, ", ".join(map(quoted, self.columns))
        if not names or not tokens.is_symbol(item[0], "*"):
            return self.piece(item)
        if tokens.word(item[0] + 1) == "EXCEPT":
            return SqlText.of(self.stands((item[0], item[0] + 1), "*"), f" EXCEPT ({names})")
        return SqlText.of(self.stands(item, f"* EXCEPT ({names})"))

    def around(self, item: Range) -> SqlText:
        """An item with windows, with its original name."""
        text = self.written(item)
        touched = any(_is_in(place, [item]) and not self.in_window(place) for place in self.replaced)
        if not touched or aliased(self.tokens, item):
            return text
        return SqlText.of(text, " AS ", quoted(self.name_of(item) or self.tokens.text(*item)))

    def in_window(self, place: Range) -> bool:
        """Whether it is in a window with a pattern."""
        return _is_in(place, [window.range for window in self.query.windows])

    def written(self, part: Range) -> SqlText:
        """A part with columns of the nested query substituted."""
        parts: list[SqlText | str] = []
        at, stop = part
        for place in sorted(self.replaced, key=lambda one: (one[0], -one[1])):
            if place[0] < at or place[1] > stop:
                continue
            parts += [self.piece((at, place[0])), " ", self.stands(place, self.replaced[place]), " "]
            at = place[1]
        return SqlText.of(*parts, self.piece((at, stop)))

    def stands(self, place: Range, text: str) -> SqlText:
        """A generated text that replaces a part."""
        span = self.tokens.span(*place)
        return SqlText.of(Piece(text, self.tokens.sql, span.start, span.stop - span.start))

    def piece(self, part: Range) -> SqlText:
        """A part of the original text."""
        return piece_of(self.tokens, *part)


def _is_in(part: Range, around: Iterable[Range]) -> bool:
    return any(start <= part[0] and part[1] <= stop for start, stop in around)
