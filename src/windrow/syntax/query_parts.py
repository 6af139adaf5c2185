"""Finds, in a statement, the SELECTs that have a WINDOW BY clause.

Only the shape of the text is read here: brackets, the words that begin a clause at one level of brackets, and
WITH lists. The rest stays ranges of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from windrow.errors import AnalysisError, ParseError, did_you_mean
from windrow.syntax.nodes import BlockText, Cte, Range
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenKind, TokenList
from windrow.syntax.window_by_clause import parse_window_by

__all__ = [
    "TAIL", "begins_named_windows", "begins_window_by", "clause_words", "find_window_queries",
    "is_set_operator", "level_around", "split_statements", "used_ctes", "visible_ctes", "with_items",
]  # fmt: skip

_SET_OPERATORS = {"UNION", "EXCEPT", "INTERSECT", "MINUS"}
TAIL = {"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "QUALIFY"}
"""Words that begin the part after the windows of a SELECT."""


def find_window_queries(tokens: TokenList) -> list[BlockText]:
    """Every SELECT with WINDOW BY, in the order of their clauses in the text.

    Raises
    ------
    ParseError
        Errors of the clause itself; ``PARSE_SYNTAX_ERROR`` for a clause outside a SELECT, or twice in one.
    AnalysisError
        ``MISSING_WINDOW_SPECIFICATION`` for OVER w, ``INVALID_USAGE_OF_STAR_OR_REGEX`` for w.*.
    """
    return [_query_of(tokens, index) for index in range(len(tokens)) if begins_window_by(tokens, index)]


def split_statements(tokens: TokenList) -> list[Range]:
    """The statements of a script: the ranges between semicolons outside brackets, empty ones left out.

    A SQL script (BEGIN … END) is one statement: its semicolons are Spark's to read.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("SELECT 1; BEGIN IF a THEN BEGIN SELECT begin, end; END; END IF; END; SELECT 3")
    >>> [tokens.text(*part) for part in split_statements(tokens)]
    ['SELECT 1', 'BEGIN IF a THEN BEGIN SELECT begin, end; END; END IF; END', 'SELECT 3']
    """
    found, start, depth, begun = [], 0, 0, 0  # the last: where a statement within a script begins
    for index in tokens.level(0, len(tokens)):
        word, is_first = tokens.word(index), index == begun
        is_label = tokens.is_symbol(index - 1, ":") and index - 2 == start
        is_whole = index == start or is_label
        if word == "BEGIN" and (is_whole or (depth and (is_first or _leads(tokens, begun, index)))):
            depth += 1
        elif depth and word == "END" and is_first and tokens.word(index + 1) not in _OTHER_ENDS:
            depth -= 1
        elif not depth and tokens.is_symbol(index, ";"):
            found.append((start, index))
            start = index + 1
        if tokens.is_symbol(index, ";") or word == "BEGIN":
            begun = index + 1
    return [(start, stop) for start, stop in (*found, (start, len(tokens))) if start < stop]


_OTHER_ENDS = ("IF", "LOOP", "WHILE", "REPEAT", "FOR", "CASE")
"""Words after END that is not that of BEGIN."""


def _leads(tokens: TokenList, begun: int, index: int) -> bool:
    """Whether what stands before BEGIN in its statement has a block: a label, a branch, a loop, a handler."""
    is_branch = tokens.word(index - 1) in ("THEN", "ELSE", "DO", "LOOP", "REPEAT") or tokens.is_symbol(
        index - 1, ":"
    )
    return is_branch or any(tokens.word(at) == "HANDLER" for at in range(begun, index))


def begins_window_by(tokens: TokenList, index: int) -> bool:
    """Whether WINDOW BY begins here: not a column named window, nor a call by a window named that."""
    if tokens.word(index) != "WINDOW" or tokens.word(index + 1) != "BY" or tokens.is_symbol(index - 1, "."):
        return False
    after = index + 2
    named = after < len(tokens) and tokens[after].is_name and tokens.word(after) != "AS"
    if named and tokens.word(after + 1) == "AS" and tokens.is_symbol(after + 2, "("):
        return True
    if tokens.word(after) == "AS" and tokens.is_symbol(after + 1, "("):
        # WINDOW by AS (…) is Spark's own named window, unless its content is ours
        if tokens.word(after + 2) != "TYPE":
            return False
        raise _malformed(tokens, after, "the window's name")
    if tokens.is_symbol(after, "(") or (named and tokens.is_symbol(after + 1, "(")):
        raise _malformed(tokens, after + 1 if named else after, "AS" if named else "the window's name")
    return False


def begins_named_windows(tokens: TokenList, index: int) -> bool:
    """Whether Spark's clause WINDOW begins here: ``WINDOW p AS (…)``."""
    return (
        tokens.word(index) == "WINDOW"
        and tokens.word(index + 2) == "AS"
        and tokens.is_symbol(index + 3, "(")
        and not tokens.is_symbol(index - 1, ".")
    )


def _malformed(tokens: TokenList, index: int, expected: str) -> ParseError:
    return ParseError(
        f"expected {expected} after WINDOW BY, found {tokens[index].text}",
        condition="PARSE_SYNTAX_ERROR",
        sql=tokens.sql,
        span=tokens[index].span,
        hint="write WINDOW BY w AS (TYPE …)",
    )


def _meant_select(tokens: TokenList, index: int) -> str | None:
    return did_you_mean(tokens.word(index), ["SELECT"], is_word=True)


def _without_from(tokens: TokenList, level: list[int], window: int) -> ParseError:
    """The error of a query block without FROM: where the word is misspelt, it points there."""
    near = (index for index in level if did_you_mean(tokens.word(index), ["FROM"], is_word=True) is not None)
    at = next(near, None)
    return ParseError(
        "query block has WINDOW BY but no FROM",
        condition="PARSE_SYNTAX_ERROR",
        sql=tokens.sql,
        span=tokens.span(window, window + 2) if at is None else tokens[at].span,
        hint="add FROM with the rows to make windows of" if at is None else "did you mean FROM?",
    )


def _query_of(tokens: TokenList, window: int) -> BlockText:
    level_start, level_stop = level_around(tokens, window)
    level = [
        index
        for index in tokens.level(level_start, level_stop)
        if tokens.parent[index] == tokens.parent[window]
    ]
    starts = [
        i for i in level if i < window and tokens.word(i) == "SELECT" and not tokens.is_symbol(i - 1, ".")
    ]
    set_before = [i for i in level if i < window and is_set_operator(tokens, i)]
    clause_stop = tokens.partner[window + 4] + 1
    set_after = [
        i for i in level if i >= clause_stop and (is_set_operator(tokens, i) or tokens.is_symbol(i, ";"))
    ]
    stop = set_after[0] if set_after else level_stop
    if not starts or (set_before and starts[-1] < set_before[-1]):
        raise ParseError(
            "WINDOW BY is outside a SELECT",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(window, window + 2),
            hint=next(
                (hint for i in level if i < window and (hint := _meant_select(tokens, i)) is not None),
                "write SELECT … FROM … WINDOW BY …",
            ),
        )
    select = starts[-1]
    marks = clause_words(tokens, [i for i in level if select < i < window])
    over = _of_rows(tokens, marks, window)
    _refuse_tail_before_window(tokens, [i for i in level if marks.get("FROM", window) < i < window])
    if "FROM" not in marks:
        raise _without_from(tokens, [i for i in level if select < i < window], window)
    after = _words_after(tokens, [i for i in level if clause_stop <= i < stop], clause_stop)
    _refuse_empty(tokens, (select + 1, marks["FROM"]), "SELECT")
    tail_start = after.get("TAIL", stop)
    groups_start = after.get("GROUP", tail_start)
    if "HAVING" in after:
        _refuse_empty(tokens, (after["HAVING"] + 1, groups_start), tokens.word(after["HAVING"]))
    in_set = bool(set_before and set_before[-1] < select) or any(
        is_set_operator(tokens, i) for i in set_after
    )
    is_grouped = "GROUP" in marks
    ordered = [marks[word] for word in ("FROM", "GROUP", "LET", "HAVING") if word in marks]
    ends = dict(pairwise([*ordered, over if is_grouped else window]))

    def part(word: str, width: int) -> Range | None:
        return (marks[word] + width, ends[marks[word]]) if word in marks else None

    clause = parse_window_by(tokens, window)
    for read in ((select + 1, marks["FROM"]), (clause_stop, stop)):
        _refuse_misuse(tokens, read, clause.name)
    return BlockText(
        range=(select, tail_start if in_set else stop),
        select=(select + 1, marks["FROM"]),
        source=(marks["FROM"], ends[marks["FROM"]]),
        group_by=part("GROUP", 2),
        let=part("LET", 1),
        group_having=part("HAVING", 1),
        group_over=(over, window) if is_grouped and over < window else None,
        clause=clause,
        having=(after["HAVING"] + 1, groups_start) if "HAVING" in after else None,
        groups_after=(groups_start, tail_start) if "GROUP" in after else None,
        tail=(stop, stop) if in_set else (tail_start, stop),
        ctes=visible_ctes(tokens, select),
    )


def level_around(tokens: TokenList, index: int) -> Range:
    """The range inside the brackets, or the statement, around a token."""
    parent = tokens.parent[index]
    if parent >= 0:
        return parent + 1, tokens.partner[parent]
    cuts = tokens.semicolons
    start = max([cut + 1 for cut in cuts if cut < index], default=0)
    return start, min([cut for cut in cuts if cut > index], default=len(tokens))


def is_set_operator(tokens: TokenList, index: int) -> bool:
    """UNION and the like; not `* EXCEPT (…)`, whose EXCEPT follows a star."""
    return (
        tokens.word(index) in _SET_OPERATORS
        and not tokens.is_symbol(index - 1, "*")
        and not tokens.is_symbol(index - 1, ".")
        and (
            tokens.word(index + 1) in ("SELECT", "ALL", "DISTINCT", "FROM", "VALUES", "TABLE")
            or tokens.is_symbol(index + 1, "(")
        )
    )


def clause_words(tokens: TokenList, level: list[int]) -> dict[str, int]:
    """The first of each word that begins a part of a SELECT up to its windows."""
    marks: dict[str, int] = {}
    for index in level:
        word = tokens.word(index)
        if tokens.is_symbol(index - 1, "."):
            continue
        if (
            word == "FROM"
            and tokens.word(index - 1) == "DISTINCT"
            and "FROM" not in marks
            and tokens.word(index - 2) in ("IS", "NOT")
        ):
            continue
        if word == "GROUP" and tokens.word(index + 1) != "BY":
            continue
        if word == "LET" and "GROUP" not in marks:
            if "FROM" in marks and tokens.is_symbol(index + 2, "="):
                raise _misplaced(tokens, index, "LET needs GROUP BY", "write GROUP BY … LET n = COUNT(*)")
            continue
        if word in ("FROM", "WHERE", "GROUP", "LET", "HAVING", "QUALIFY", "WINDOW") and (
            word == "FROM" or "FROM" in marks
        ):
            marks.setdefault(word, index)
    return marks


def _misplaced(tokens: TokenList, index: int, message: str, hint: str) -> ParseError:
    return ParseError(
        message, condition="PARSE_SYNTAX_ERROR", sql=tokens.sql, span=tokens[index].span, hint=hint
    )


def _second_clause(tokens: TokenList, window: int) -> ParseError:
    hint = "move one of them into a subquery in FROM"
    return _misplaced(tokens, window, "query block has two WINDOW BY clauses", hint)


def _of_rows(tokens: TokenList, marks: dict[str, int], window: int) -> int:
    """Where QUALIFY and named windows begin that apply to the input rows of the windows."""
    if "WINDOW" in marks and tokens.word(marks["WINDOW"] + 1) == "BY":
        raise _second_clause(tokens, window)
    begins = [marks["QUALIFY"]] if "QUALIFY" in marks else []
    if "WINDOW" in marks and tokens.word(marks["WINDOW"] + 2) == "AS":
        begins.append(marks["WINDOW"])
    return min(begins, default=window)


def _refuse_tail_before_window(tokens: TokenList, level: list[int]) -> None:
    for index in level:
        word, after = tokens.word(index), index + 1
        sorts = word in ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE") and tokens.word(after) == "BY"
        limits = word in ("LIMIT", "OFFSET") and (
            tokens[after].kind is TokenKind.NUMBER
            or tokens.is_symbol(after, "?")
            or tokens.is_symbol(after, ":")
            or tokens.word(after) == "ALL"
        )
        if (sorts or limits) and not tokens.is_symbol(index - 1, "."):
            words = f"{word} BY" if sorts else word
            hint = f"put {words} after WINDOW BY, or in a subquery in FROM"
            raise _misplaced(tokens, index, f"{words} must follow WINDOW BY", hint)


def _refuse_misuse(tokens: TokenList, part: Range, window: str) -> None:
    """Refuse OVER w and w.*, which use the windows as a window of OVER or as one row."""

    def is_window(index: int) -> bool:
        return index < part[1] and tokens[index].is_name and tokens[index].name.lower() == window.lower()

    index = part[0]
    while index < part[1]:
        if opens_query(tokens, index):
            index = tokens.partner[index]  # a subquery has names of its own
        elif tokens.word(index) == "OVER" and tokens.is_symbol(index - 1, ")") and is_window(index + 1):
            raise AnalysisError(
                f"{window} is not a window of OVER",
                condition="MISSING_WINDOW_SPECIFICATION",
                sqlstate="42P20",
                sql=tokens.sql,
                span=tokens.span(index, index + 2),
                hint=f"leave OVER {window} out: an aggregate that reads {window} is computed for each window",
            )
        elif (
            is_window(index)
            and not tokens.is_symbol(index - 1, ".")
            and tokens.is_symbol(index + 1, ".")
            and tokens.is_symbol(index + 2, "*")
        ):
            raise AnalysisError(
                f"{window} is an array of rows, so {window}.* has no columns",
                condition="INVALID_USAGE_OF_STAR_OR_REGEX",
                sqlstate="42000",
                sql=tokens.sql,
                span=tokens.span(index, index + 3),
                hint=f"write COUNT({window}) to count the rows, or inline({window}) to return each with its"
                " columns",
            )
        index += 1


def _refuse_empty(tokens: TokenList, part: Range, after: str) -> None:
    if part[0] >= part[1]:
        raise ParseError(
            f"expected an expression after {after}",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens[part[0] - 1].span,
        )


def _words_after(tokens: TokenList, level: list[int], clause_stop: int) -> dict[str, int]:
    """Where the parts after the clause begin: HAVING or WHERE, groups of windows, and the tail.

    Anything else there is an error.
    """
    found: dict[str, int] = {}
    for index in level:
        word = tokens.word(index)
        if tokens.is_symbol(index - 1, "."):
            continue
        if word in ("HAVING", "WHERE") and index == clause_stop:
            found["HAVING"] = index
        elif (
            word == "GROUP"
            and tokens.word(index + 1) == "BY"
            and "GROUP" not in found
            and (index == clause_stop or "HAVING" in found)
        ):
            found["GROUP"] = index
        elif word in TAIL and (index == clause_stop or found):
            begins = tokens.word(index + 1) == "BY" or word in ("LIMIT", "OFFSET", "QUALIFY")
            if begins:
                found["TAIL"] = index
                break
        elif begins_named_windows(tokens, index) and (index == clause_stop or found):
            found["TAIL"] = index
            break
        elif index == clause_stop and word == "WINDOW" and tokens.word(index + 1) == "BY":
            raise _second_clause(tokens, index)
        elif index == clause_stop:
            raise ParseError(
                "expected HAVING, GROUP BY, ORDER BY, LIMIT or the end after WINDOW BY,"
                f" found {tokens[index].text}",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens[index].span,
                hint="write FROM before the clause"
                if word == "FROM"
                else did_you_mean(word, ["HAVING", "GROUP", *sorted(TAIL)], is_word=True),
            )
    return found


def grouping_keys(tokens: TokenList, start: int, stop: int, *, inside: bool = False) -> Iterator[Range]:
    """The expressions in an item of GROUP BY: several in ROLLUP, CUBE and GROUPING SETS, which may repeat.

    Brackets are sets only `inside` these.
    """
    if tokens.word(stop - 2) == "WITH" and tokens.word(stop - 1) in ("ROLLUP", "CUBE"):
        stop -= 2
    for at in tokens.level(start + 1, stop):
        if tokens.word(at) == "GROUPING" and tokens.word(at + 1) == "SETS":  # of keys that are listed before
            stop = at
            break
    words = {"ROLLUP": 1, "CUBE": 1, "GROUPING": 2}.get(tokens.word(start), 0)
    bracket = start + words
    is_set = tokens.is_symbol(bracket, "(") and tokens.partner[bracket] == stop - 1
    inner = tokens.split(bracket + 1, stop - 1) if is_set and bracket + 1 < stop - 1 else []
    if is_set and (words or inside):
        for one in inner:
            yield from grouping_keys(tokens, *one, inside=True)
    else:
        yield start, stop


def visible_ctes(tokens: TokenList, position: int) -> tuple[Cte, ...]:
    """The named queries that a SELECT at `position` sees, from the outermost level inwards."""
    inside = {tokens.parent[position]: position}  # for each level of brackets, the part at the position
    at = position
    while tokens.parent[at] >= 0:
        at = tokens.parent[at]
        inside[tokens.parent[at]] = at
    statement = level_around(tokens, at)[0]
    return tuple(
        cte
        for index in tokens.places("WITH")
        if statement <= index < inside.get(tokens.parent[index], -1) and not tokens.is_symbol(index - 1, ".")
        for cte in with_items(tokens, index)
        if cte.body[1] < inside[tokens.parent[index]]
    )


def used_ctes(tokens: TokenList, ctes: Sequence[Cte], body: Range) -> list[Cte]:
    """The named queries that a part of a query uses, directly or through others."""
    ranges, used = [body], set()
    while ranges:
        start, stop = ranges.pop()
        names = {token.name.lower() for token in tokens.tokens[start:stop] if token.is_name}
        new = [cte for cte in ctes if cte.name.lower() in names and cte.item not in used]
        used |= {cte.item for cte in new}
        ranges += [cte.body for cte in new]
    return [cte for cte in ctes if cte.item in used]


def with_items(tokens: TokenList, index: int) -> list[Cte]:
    """The items of a WITH list; none if this WITH is of another kind (WITH ROLLUP, WITH SCHEMA …)."""
    recursive = tokens.word(index + 1) == "RECURSIVE"
    at = index + (2 if recursive else 1)
    items: list[Cte] = []
    while at < len(tokens) and tokens[at].is_name:
        first, at = at, at + 1
        if tokens.is_symbol(at, "("):
            after = tokens.partner[at] + 1
            if tokens.word(after) in ("AS", "MAX") or tokens.is_symbol(after, "("):
                at = after
        while tokens.word(at) in ("MAX", "RECURSION", "LEVEL") or (
            at < len(tokens) and tokens[at].text.isdigit()
        ):
            at += 1
        if tokens.word(at) == "AS":
            at += 1
        if not tokens.is_symbol(at, "("):
            return items
        close = tokens.partner[at]
        items.append(Cte(tokens[first].name, (first, close + 1), (at + 1, close), recursive))
        at = close + 1
        if not tokens.is_symbol(at, ","):
            break
        at += 1
    return items
