"""Pipes over streams as SELECTs, which have nodes in plans.

    FROM s [RANGE 3] |> WHERE v > 1 |> AGGREGATE COUNT(*) AS n GROUP BY k |> WHERE n > 2
      →  SELECT * FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 3] WHERE (v > 1) GROUP BY k) AS s WHERE (n > 2)

An operator without a SELECT form, such as SET, remains a pipe, alone in brackets. Several relations have
their names up to the operator that needs a nested SELECT; a single one has its name after that too. So a
condition on several that are joined with another is that of a semi join:

    FROM s [NOW] JOIN t [NOW] |> WHERE s.v > 1 |> JOIN u [NOW] ON u.k = t.k
      →  SELECT * FROM s [NOW] JOIN t [NOW] LEFT SEMI JOIN (SELECT 1 AS `__one`) AS `__one` ON (s.v > 1)
             JOIN u [NOW] ON u.k = t.k

Unlike in SELECTs, LIMIT and OFFSET follow the order of an earlier ORDER BY, whatever is between. So its keys
are columns up to there, of several relations those of a lateral query:

    FROM s [RANGE 3] |> ORDER BY v |> SELECT k |> LIMIT 2
      →  SELECT * EXCEPT (`__order0`) FROM (SELECT k, `__order0` FROM
             (SELECT *, (v) AS `__order0` FROM s [RANGE 3]) AS s) AS s
         ORDER BY `__order0` ASC NULLS FIRST LIMIT 2
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.pipes import Level, is_pipe, level_of
from windrow.syntax.cql_clauses import alias_after
from windrow.syntax.nodes import Range
from windrow.syntax.order_by import order_item
from windrow.syntax.query_parts import TAIL, is_set_operator
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.streams.emit_clause import clauses_in
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["pipe_as_selects"]

_JOINS = {"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "LATERAL"}
_SETS = {"UNION", "EXCEPT", "INTERSECT", "MINUS"}
_SEMI_JOIN = "LEFT SEMI JOIN (SELECT 1 AS `__one`) AS `__one`"
_SEVERAL_SETS = {"ROLLUP", "CUBE", "GROUPING", "ALL"}


def pipe_as_selects(tokens: TokenList) -> SqlText | None:
    """The text with the operators of its first pipe as SELECTs; None if there is no pipe, or none can be
    rewritten.

    The resulting text may have further ones.
    """
    seen: set[int] = set()
    for at in range(len(tokens)):
        if not is_pipe(tokens, at):
            continue
        level = level_of(tokens, at)
        if level.start in seen:
            continue
        seen.add(level.start)
        query = _piped(tokens, level)
        if query is not None:
            stop = _end(tokens, level)
            before, after = _piece(tokens, 0, level.start), _piece(tokens, stop, len(tokens))
            return SqlText.of(before, query, after)
    return None


@dataclass(frozen=True)
class _Block:
    """A SELECT under construction.

    Attributes
    ----------
    source, name, is_single
        What stands after FROM, and its name where it is a single relation that has one.
    listed
        The relations of the source that stand between commas.
    items, conditions, by
        The SELECT list, what stands in WHERE, and the keys of GROUP BY.
    tail, offset, stage
        ORDER BY and LIMIT, and OFFSET; the last operator of them: ORDER BY 1, OFFSET 2, LIMIT 3.
    is_ordered
        Whether its rows have an order, which LIMIT and OFFSET follow.
    keys, order
        The columns that have its keys, where a later operator needs them, and ORDER BY them.
    """

    source: SqlText
    name: str | None = None
    is_single: bool = True
    listed: tuple[SqlText, ...] = ()
    items: SqlText | None = None
    conditions: tuple[SqlText, ...] = ()
    by: SqlText | None = None
    tail: SqlText = field(default_factory=SqlText)
    offset: SqlText = field(default_factory=SqlText)
    stage: int = 0
    is_ordered: bool = False
    keys: SqlText | None = None
    order: SqlText = field(default_factory=SqlText)

    @property
    def is_open(self) -> bool:
        """Whether it only has relations and conditions."""
        return self.items is None and self.stage == 0

    @property
    def text(self) -> SqlText:
        """The query."""
        where = (
            SqlText.of(" WHERE ", SqlText.join(" AND ", self.conditions)) if self.conditions else SqlText()
        )
        by = SqlText() if self.by is None else SqlText.of(" GROUP BY ", self.by)
        items = SqlText.of("*") if self.items is None else self.items
        return SqlText.of("SELECT ", items, " FROM ", self.source, where, by, self.tail, self.offset)

    def piped(self, operator: SqlText) -> _Block:
        """A SELECT over a pipe with one operator, which Spark evaluates."""
        is_source = self.is_open and not self.conditions
        rows = self.source if is_source else self.around().source
        made = SqlText.of("(FROM ", rows, " |> ", operator, ")", self.alias)
        return self.over(made)

    @property
    def alias(self) -> str:
        """The alias of its rows."""
        return "" if self.name is None else f" AS {quoted(self.name)}"

    def joined(self, text: SqlText | str) -> _Block:
        """The rows joined with another relation, whose condition may read all those before."""
        source = SqlText.join(" CROSS JOIN ", self.listed) if self.listed else self.source
        return replace(self, source=SqlText.of(source, " ", text), listed=())

    def filtered(self) -> _Block:
        """The relations of which only rows that satisfy the conditions remain, with their names."""
        on = SqlText.of(f"{_SEMI_JOIN} ON ", SqlText.join(" AND ", self.conditions))
        return replace(self.joined(on), conditions=())

    def around(self) -> _Block:
        """A SELECT over its rows."""
        return self.over(SqlText.of("(", self.text, ")", self.alias))

    def over(self, source: SqlText) -> _Block:
        """A SELECT over a source with its rows in their order."""
        return _Block(source, self.name, is_ordered=self.is_ordered, keys=self.keys, order=self.order)

    def without_keys(self) -> _Block:
        """The query without the columns that have the keys of its order."""
        if self.keys is None:
            return self
        over = self if self.items is None else self.around()
        return replace(over, items=SqlText.of("* EXCEPT (", self.keys, ")"), keys=None)


def _piped(tokens: TokenList, level: Level, *, has_keys: bool = False) -> SqlText | None:
    """The SELECTs of a pipe; with columns for the keys of its orders, if an operator needs these."""
    stop = _end(tokens, level)
    block, operators = _first(tokens, level.start, level.pipes[0]), _operators(tokens, level, stop)
    if block is None or operators is None:
        return None
    if len(operators) == 1 and _with_operator(tokens, block, operators[0]) is None:
        return None
    for operator in operators:
        word = tokens.word(operator[0])
        is_cut = word in ("LIMIT", "OFFSET")
        if is_cut and block.is_ordered and not (block.stage and _stays(tokens, block, operator)):
            if not has_keys:
                return _piped(tokens, level, has_keys=True)
            over = block if block.is_open else block.around()
            block = replace(over, tail=SqlText.of(" ", block.order), stage=1)
        if word in _JOINS and block.conditions and block.is_open and not block.is_single:
            block = block.filtered()
        is_distinct = word == "SELECT" and tokens.word(operator[0] + 1) == "DISTINCT"
        if is_distinct or word in {*_JOINS, *_SETS, "PIVOT", "UNPIVOT", "ORDER", "AGGREGATE"}:
            if block.keys is not None and block.is_open and not block.is_single:
                return None  # its relations would lose their names
            ordered = block.without_keys()
            block = block if ordered is block else replace(ordered.around(), is_ordered=False)
        if word == "ORDER" and has_keys:
            keyed = _with_keys(tokens, block, operator)
        elif block.keys is not None and _has_star_in_call(tokens, operator):
            return None  # the star would be of the keys, too
        else:
            keyed = _with_operator(tokens, block, operator)
            if keyed is None and block.keys is not None and word == "SELECT":
                return None  # it would leave the keys out
            keyed = keyed or block.piped(_piece(tokens, *operator))
        if keyed is None:
            return None
        block = keyed
    return block.without_keys().text


def _with_keys(tokens: TokenList, block: _Block, operator: Range) -> _Block | None:
    """The query with ORDER BY, whose keys are columns; None for numbers of columns, and for ALL of them."""
    items = [order_item(tokens, item) for item in tokens.split(operator[0] + 2, operator[1])]
    if any(_is_by_place(tokens, item.expression) for item in items):
        return None
    names = [quoted(f"__order{at}") for at in range(len(items))]
    made = [
        SqlText.of("(", _piece(tokens, *item.expression), f") AS {name}")
        for item, name in zip(items, names, strict=True)
    ]
    ways = [
        f"{name} {'DESC' if item.descending else 'ASC'} NULLS {'FIRST' if item.nulls_first else 'LAST'}"
        for item, name in zip(items, names, strict=True)
    ]
    order = SqlText.of("ORDER BY ", ", ".join(ways))
    keys = SqlText.of(", ".join(names))
    if block.is_open and not block.is_single:
        named = block.joined(SqlText.of("JOIN LATERAL (SELECT ", SqlText.join(", ", made), ") AS `__keys`"))
        return replace(named, is_ordered=True, keys=keys, order=order)
    over = block if block.is_open else block.around()
    over = replace(over, items=SqlText.of("*, ", SqlText.join(", ", made))).around()
    return replace(over, tail=SqlText.of(" ", order), stage=1, is_ordered=True, keys=keys, order=order)


def _is_by_place(tokens: TokenList, key: Range) -> bool:
    """Whether a key of ORDER BY is the number of a column, also in brackets, or ALL columns."""
    words = [at for at in range(*key) if not (tokens.is_symbol(at, "(") or tokens.is_symbol(at, ")"))]
    return len(words) == 1 and (tokens[words[0]].kind is TokenKind.NUMBER or tokens.word(words[0]) == "ALL")


def _has_star_in_call(tokens: TokenList, operator: Range) -> bool:
    """Whether all columns are arguments of a function, as in ``struct(*)``."""
    return any(
        tokens.is_symbol(at, "*")
        and tokens.parent[at] >= operator[0]
        and not opens_query(tokens, tokens.parent[at])
        and (tokens.is_symbol(at - 1, "(") or tokens.is_symbol(at - 1, ",") or tokens.is_symbol(at - 1, "."))
        and tokens.word(at - 2) != "COUNT"
        for at in range(*operator)
    )


def _end(tokens: TokenList, level: Level) -> int:
    """The end of the operators: at clauses such as EMIT."""
    last = level.pipes[-1]
    found = clauses_in(tokens, last, level.stop)
    return next((at for at in found if tokens.parent[at] == tokens.parent[last]), level.stop)


def _operators(tokens: TokenList, level: Level, stop: int) -> list[Range] | None:
    """The operators of a pipe, and the clauses of the whole; None if there are other clauses than ours."""
    found: list[Range] = []
    for pipe, end in zip(level.pipes, [*level.pipes[1:], stop], strict=True):
        parts = _with_tail(tokens, (pipe + 1, end), is_last=end == stop)
        if parts is None:
            return None
        found += parts
    return found


def _with_tail(tokens: TokenList, operator: Range, *, is_last: bool) -> list[Range] | None:
    """An operator, and the ORDER BY, LIMIT and OFFSET that follow the last one without a pipe: they apply to
    everything before. None if another clause or a query follows, which Spark may refuse.
    """
    start, stop = operator
    word = tokens.word(start)
    if word in _SETS:
        return [operator]
    own = [at for at in tokens.level(start + 1, stop) if not tokens.is_symbol(at - 1, ".")]
    tails = [at for at in own if tokens.word(at) in TAIL and tokens.word(at + 1) == "BY"]
    cuts = [at for at in own if tokens.word(at) in ("LIMIT", "OFFSET") and word != "LIMIT"]
    is_strange = any(is_set_operator(tokens, at) for at in own)
    is_strange |= any(tokens.word(at) != "ORDER" for at in tails)
    is_strange |= not all(_is_cut(tokens, at) for at in cuts)
    begins = [*tails, *cuts[:1]]
    if is_strange or (begins and (not is_last or word == "ORDER")):
        return None
    edges = [start, *sorted(begins), stop]
    return list(pairwise(edges))


def _is_cut(tokens: TokenList, at: int) -> bool:
    """Whether a word begins LIMIT or OFFSET, and is not the name of a column."""
    if at + 1 >= len(tokens):
        return False
    is_value = tokens[at + 1].kind is TokenKind.NUMBER or tokens.word(at + 1) == "ALL"
    is_value |= any(tokens.is_symbol(at + 1, one) for one in "?:(")
    return is_value and not any(tokens.is_symbol(at - 1, one) for one in ("=", "<", ">", "+", "-", ","))


def _first(tokens: TokenList, start: int, stop: int) -> _Block | None:
    """The query before the first pipe."""
    word = tokens.word(start)
    if word not in ("FROM", "TABLE"):
        return _Block(SqlText.of("(", _piece(tokens, start, stop), ")"))
    own = [at for at in tokens.level(start, stop) if not tokens.is_symbol(at - 1, ".")]
    if any(tokens.word(at) == "SELECT" for at in own):
        return None
    is_single = not any(tokens.is_symbol(at, ",") or tokens.word(at) == "JOIN" for at in own)
    name = _name_of(tokens, (start + 1, stop)) if is_single else None
    return _Block(_piece(tokens, start + 1, stop), name, is_single, _listed(tokens, (start + 1, stop)))


def _listed(tokens: TokenList, source: Range) -> tuple[SqlText, ...]:
    """The relations between commas in FROM; none if there is one, or some are joined."""
    words = {tokens.word(at) for at in tokens.level(*source)}
    parts = tokens.split(*source)
    if len(parts) < 2 or words & {"JOIN", "VALUES", "VIEW", "FOR"}:
        return ()
    return tuple(_piece(tokens, *part) for part in parts)


def _name_of(tokens: TokenList, relation: Range) -> str | None:
    """The name of a relation; None for a query without one."""
    at, stop = relation
    name = None
    if tokens.is_symbol(at, "("):
        at = tokens.partner[at] + 1
    elif tokens[at].is_name and not tokens.is_symbol(at + 1, "("):
        while tokens.is_symbol(at + 1, ".") and at + 2 < stop:
            at += 2
        name, at = tokens[at].name, at + 1
    if at < stop and tokens.is_symbol(at, "["):
        at = tokens.partner[at] + 1
    alias = alias_after(tokens, at, stop) if at < stop else None
    if alias is not None:
        name, at = tokens[alias].name, alias + 1
    return name if at == stop else None


def _with_operator(tokens: TokenList, block: _Block, operator: Range) -> _Block | None:
    """The query with an operator; None for one without a SELECT form."""
    start, stop = operator
    word = tokens.word(start)
    rest = start + 1, stop
    if word in ("LIMIT", "OFFSET", "ORDER"):
        return _ordered(tokens, block, operator)
    if word in _JOINS:
        left = block if block.is_open and not block.conditions else block.around()
        made = left.joined(_piece(tokens, *operator))
        return replace(made, name=None, is_single=False, is_ordered=False)
    if word in _SETS:
        rows = SqlText.of("(", block.text, ")") if block.stage else block.text
        return _Block(SqlText.of("(", rows, " ", _piece(tokens, *operator), ")"))
    if word in ("PIVOT", "UNPIVOT"):
        return _Block(SqlText.of("(", block.text, ") ", _piece(tokens, *operator)))
    if any(tokens.word(at) == "WINDOW" and tokens.word(at + 2) == "AS" for at in tokens.level(*rest)):
        return None
    if word == "AS" and stop - start == 2:
        return replace(block, name=tokens[start + 1].name).around()
    over = block if block.is_open else block.around()
    if word == "WHERE":
        condition = SqlText.of("(", _piece(tokens, *rest), ")")
        return replace(over, conditions=(*over.conditions, condition))
    if word == "SELECT":
        items = _piece(tokens, *rest)
        has_all = any(_is_star(tokens, item, over.name) for item in tokens.split(*rest))
        return replace(over, items=SqlText.of(items, ", ", over.keys) if over.keys and not has_all else items)
    if word == "EXTEND":
        return replace(over, items=SqlText.of("*, ", _piece(tokens, *rest)))
    if word == "DROP":
        return replace(over, items=SqlText.of("* EXCEPT (", _piece(tokens, *rest), ")"))
    return _aggregated(tokens, over, rest) if word == "AGGREGATE" else None


def _is_star(tokens: TokenList, item: Range, name: str | None) -> bool:
    """Whether an element of a SELECT list is all columns: ``*``, ``* EXCEPT (k)`` or ``s.*``."""
    start, stop = item
    is_own = stop - start > 2 and name is not None and tokens.text(start, start + 1).lower() == name.lower()
    return tokens.is_symbol(start, "*") or (is_own and tokens.is_symbol(start + 2, "*"))


def _aggregated(tokens: TokenList, block: _Block, rest: Range) -> _Block | None:
    """``AGGREGATE COUNT(*) AS n GROUP BY k % 2 AS odd``: its keys are its first columns."""
    start, stop = rest
    own = tokens.level(start, stop)
    by = next((at for at in own if tokens.word(at) == "GROUP" and tokens.word(at + 1) == "BY"), stop)
    keys = tokens.split(by + 2, stop) if by < stop else []
    if any(
        tokens[first].kind is TokenKind.NUMBER or tokens.word(first) in _SEVERAL_SETS for first, _ in keys
    ):
        return None
    named = [_piece(tokens, *key) for key in keys]
    calls = [_piece(tokens, start, by)] if start < by else []
    bare = [_piece(tokens, *without_alias(tokens, key)) for key in keys]
    by_keys = SqlText.join(", ", bare) if keys else None
    return replace(block, items=SqlText.join(", ", [*named, *calls]), by=by_keys, is_ordered=False)


def _ordered(tokens: TokenList, block: _Block, operator: Range) -> _Block:
    """The query with ORDER BY, LIMIT or OFFSET."""
    word, made = tokens.word(operator[0]), SqlText.of(" ", _piece(tokens, *operator))
    over = block if _stays(tokens, block, operator) else block.around()
    over = replace(over, is_ordered=word == "ORDER" or over.is_ordered)
    if word == "OFFSET":
        return replace(over, offset=made, stage=2)
    return replace(over, tail=SqlText.of(over.tail, made), stage=1 if word == "ORDER" else 3)


def _stays(tokens: TokenList, block: _Block, operator: Range) -> bool:
    """Whether ORDER BY, LIMIT or OFFSET can be part of the SELECT itself: they apply to its output, not to
    its input.
    """
    if block.stage == 0:
        return block.is_open
    words = [tokens.word(at) for at in tokens.level(*operator)]
    return words[0] != "ORDER" and (
        block.stage == 1 or (block.stage == 2 and words[0] == "LIMIT" and "OFFSET" not in words)
    )


def _piece(tokens: TokenList, start: int, stop: int) -> SqlText:
    return SqlText.of(piece_of(tokens, start, stop, " "))
