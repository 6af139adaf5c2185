"""Windows of OVER with patterns over joins, as SELECTs over queries that return the joins' rows.

SELECT o.k, q.*, m OVER p FROM o JOIN q ON … WINDOW p AS (ORDER BY q.d … PATTERN …)
→  SELECT __o_k AS k, __q.*, m OVER p FROM (SELECT *, o.k AS __o_k, q.d AS __q_d, struct(q.*) AS __q FROM …)
   WINDOW p AS (ORDER BY __q_d … PATTERN …)

So a column is that of its relation wherever it is read, even if several relations have its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow.algebra.names import of_relation, piece_of, verbatim
from windrow.algebra.qualified import relations_of
from windrow.syntax.nodes import Range, is_within
from windrow.syntax.patterns.match_nodes import variable_name
from windrow.syntax.patterns.pattern_windows import PatternBlock, find_pattern_windows
from windrow.syntax.patterns.row_patterns import variables_of
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.subqueries import opens_query, own_relations
from windrow.syntax.tokens import TokenList

__all__ = ["patterns_over_join"]


def patterns_over_join(tokens: TokenList) -> SqlText | None:
    """The text with the first such SELECT over a query; None if there is none.

    SELECTs over groups and windows, and those without qualified names, stay unchanged. The resulting text may
    have further ones.

    Raises
    ------
    ParseError, AnalysisError
        As `find_pattern_windows`.
    """
    for query in find_pattern_windows(tokens):
        join = _Join(tokens, query)
        if query.joined and query.made_by is None and join.find():
            start, stop = tokens.span(*query.range).start, tokens.span(*query.range).stop
            return SqlText.of(
                verbatim(tokens, 0, start), join.text(), verbatim(tokens, stop, len(tokens.sql))
            )
    return None


@dataclass
class _Join:
    """A SELECT, the columns of the nested query by name, and their substitutes around it."""

    tokens: TokenList
    query: PatternBlock
    columns: dict[str, SqlText] = field(default_factory=dict)
    replaced: dict[Range, str] = field(default_factory=dict)

    def find(self) -> bool:
        """Whether columns are read with qualifiers."""
        tokens, query = self.tokens, self.query
        self.relations = list(relations_of(tokens, query.source))
        source = range(*query.source)
        for at in range(*query.range):
            if at in source or not tokens[at].is_name or not tokens.is_symbol(at + 1, "."):
                continue
            if (
                tokens.is_symbol(at - 1, ".")
                or tokens.is_symbol(at - 1, ":")
                or tokens.is_symbol(at + 3, "(")
            ):
                continue
            if tokens[at].name.lower() in self.relations and not self.is_other(at):
                self.take(at)
        return bool(self.replaced)

    def take(self, at: int) -> None:
        """Make a column for a qualified name."""
        tokens, relation = self.tokens, self.tokens[at].name.lower()
        if tokens.is_symbol(at + 2, "*"):
            is_count = tokens.is_symbol(at - 1, "(") and tokens.word(at - 2) == "COUNT"
            self.replaced[at, at + 3] = "*" if is_count else f"{quoted(self.whole(relation))}.*"
        elif tokens[at + 2].is_name:
            name = of_relation(relation, tokens[at + 2].name.lower())
            self.columns.setdefault(name, piece_of(tokens, at, at + 3))
            self.replaced[at, at + 3] = quoted(name)

    def whole(self, relation: str) -> str:
        """The column with a relation's row."""
        name = of_relation(relation, "*")
        self.columns.setdefault(name, SqlText.of(f"struct({quoted(relation)}.*)"))
        return name

    def is_other(self, at: int) -> bool:
        """Whether the name is a variable of the pattern, or a relation of a subquery, at this position."""
        tokens, name = self.tokens, self.tokens[at].name
        for window in self.query.windows:
            clause = window.clause
            named = (item.expression for item in (*clause.measures, *clause.defines))
            if any(start <= at < stop for start, stop in named):
                known = {*variables_of(clause.pattern), *(one.name for one in clause.subsets)}
                if variable_name(tokens[at]) in known:
                    return True
        inside = tokens.parent[at]
        while inside > self.query.range[0]:
            query = (inside, tokens.partner[inside] + 1)
            if opens_query(tokens, inside) and name.upper() in own_relations(tokens, query):
                return True
            inside = tokens.parent[inside]
        return False

    # -- the SELECT around -------------------------------------------------------------------------

    def text(self) -> SqlText:
        """The SELECT over the nested query."""
        tokens, query = self.tokens, self.query
        first = query.select[0] + (tokens.word(query.select[0]) in ("DISTINCT", "ALL"))
        items = tokens.split(first, query.select[1])
        stars = [item for item in items if tokens.is_symbol(item[0], "*")]
        shown = {star: self.star(star) for star in stars}
        selected = [shown[item] if item in shown else self.item(item) for item in items]
        if tokens.word(query.select[0]) == "DISTINCT":
            self.name_what_is_sorted(items)
        inside = [SqlText.of(text, f" AS {quoted(name)}") for name, text in self.columns.items()]
        distinct = tokens.word(query.select[0]) + " " if first > query.select[0] else ""
        return SqlText.of(
            f"SELECT {distinct}",
            SqlText.join(", ", selected),
            " FROM (SELECT *, ",
            SqlText.join(", ", inside),
            " ",
            piece_of(tokens, *query.source),
            ") ",
            self.written((query.source[1], query.range[1])),
        )

    def star(self, item: Range) -> SqlText:
        """A star over all columns of the join.

        These are those of all relations in order, if no columns are merged.
        """
        tokens, source = self.tokens, self.query.source
        merges = any(
            tokens.word(at) in ("USING", "NATURAL", "SEMI", "ANTI", "PIVOT") for at in range(*source)
        )
        if item[1] == item[0] + 1 and not merges:
            names = [self.whole(relation) for relation in self.relations]
            return self.stands(item, ", ".join(f"{quoted(name)}.*" for name in names))
        hidden = ", ".join(map(quoted, self.columns))
        if item[1] == item[0] + 1:
            return self.stands(item, f"* EXCEPT ({hidden})")
        bracket = item[0] + 2
        rest = piece_of(tokens, bracket + 1, item[1])
        return SqlText.of(self.stands((item[0], bracket + 1), f"* EXCEPT ({hidden}, "), rest)

    def item(self, item: Range) -> SqlText:
        """An item, with the name that it would have over the join."""
        text, tokens = self.written(item), self.tokens
        has_alias = without_alias(tokens, item) != item and tokens.word(item[1] - 2) != "OVER"
        if has_alias or not any(is_within(at, item) for at in self.replaced):
            return text
        if tokens.is_symbol(item[1] - 1, "*"):
            return text
        call = next((call for call in self.query.calls if call.range == item), None)
        if call is not None and call.measure is not None:
            return text
        is_path = item in self.replaced
        return SqlText.of(text, " AS ", quoted(tokens[item[1] - 1].name if is_path else tokens.text(*item)))

    def name_what_is_sorted(self, items: list[Range]) -> None:
        """With DISTINCT, only selected columns can be sorted by, under their names: name these."""
        tokens = self.tokens
        said = {tokens.folded(*item): tokens[item[1] - 1].name for item in items if item in self.replaced}
        for place in self.replaced:
            if is_within(place, self.query.tail) and tokens.folded(*place) in said:
                self.replaced[place] = quoted(said[tokens.folded(*place)])

    def written(self, part: Range) -> SqlText:
        """A part with columns of the nested query substituted."""
        parts: list[SqlText | str] = []
        at, stop = part
        for place in sorted(one for one in self.replaced if is_within(one, part)):
            parts += [piece_of(self.tokens, at, place[0]), " ", self.stands(place, self.replaced[place]), " "]
            at = place[1]
        return SqlText.of(*parts, piece_of(self.tokens, at, stop))

    def stands(self, place: Range, text: str) -> SqlText:
        """A generated text that replaces a part."""
        span = self.tokens.span(*place)
        return SqlText.of(Piece(text, self.tokens.sql, span.start, span.stop - span.start))
