"""Finds what an expression of MATCH_RECOGNIZE reads of the match: navigations, aggregates, numbers.

Each is a stretch of tokens whose value is taken at some rows of the match. What stands between them is an
expression of values, which Spark judges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.algebra.aggregates import kernel_function
from windrow.errors import AnalysisError, NotSupportedError, WindrowError, did_you_mean
from windrow.syntax.match_nodes import variable_name
from windrow.syntax.nodes import Range
from windrow.syntax.ordering import order_item
from windrow.syntax.subqueries import opens_query, own_relations
from windrow.syntax.tokens import Kind, TokenList

__all__ = ["Aggregation", "Leaf", "Navigated", "Numbered", "classifiers", "find_leaves", "references"]

_LOGICAL, _PHYSICAL = ("FIRST", "LAST"), ("PREV", "NEXT")
_KEEP_NULLS = ("first", "last", "any_value")


@dataclass(frozen=True, slots=True)
class Navigated:
    """A value at one row: FIRST or LAST of `variable` (None: of all rows) but `offset`, `shift` rows on.

    `argument` is the expression of that row; None for CLASSIFIER().
    """

    range: Range
    variable: str | None
    from_first: bool
    offset: int
    shift: int
    final: bool
    argument: Range | None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate over the rows of `variable` (None: over all rows).

    `function` is the kernel's name. `argument` is None for a count of rows, and where `of_classifier`.
    `filter` is the condition of the rows that count. Where `call` is there, the kernel lacks the aggregate:
    Spark evaluates this stretch of text, whose `arguments` are values of one row.
    """

    range: Range
    variable: str | None
    function: str
    final: bool
    argument: Range | None
    of_classifier: bool = False
    filter: Range | None = None
    call: Range | None = None
    arguments: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class Numbered:
    """MATCH_NUMBER()."""

    range: Range


Leaf = Navigated | Aggregation | Numbered


def find_leaves(
    tokens: TokenList,
    expression: Range,
    variables: frozenset[str],
    *,
    in_define: bool,
    in_window: bool = False,
) -> tuple[Leaf, ...]:
    """Everything in an expression that reads the match, in order; names of columns alone are not listed.

    Matches of a window of OVER have no numbers.

    Raises
    ------
    AnalysisError
        ``FINAL_IN_DEFINE``, ``NESTED_AGGREGATE``, ``NESTED_NAVIGATION``, ``MIXED_VARIABLES``,
        ``INVALID_NAVIGATION``, ``UNKNOWN_VARIABLE``.
    NotSupportedError
        ``UNSUPPORTED_MEASURE``.
    """
    finder = _Finder(tokens, variables, in_define=in_define, in_window=in_window)
    return tuple(finder.leaves(*expression))


def references(tokens: TokenList, within: Range, variables: frozenset[str]) -> Iterator[tuple[str, int]]:
    """The variables by which columns are qualified in a stretch, with their tokens.

    In a subquery a relation of its own hides the variable of its name.
    """
    hidden = _hidden(tokens, within)
    for at in range(*within):
        token = tokens[at]
        is_qualifier = tokens.is_symbol(at + 1, ".") and at + 2 < within[1]
        if (
            token.is_name
            and is_qualifier
            and not tokens.is_symbol(at - 1, ".")
            and variable_name(token) in variables
            and not any(
                start < at < stop and token.name.upper() in names for (start, stop), names in hidden.items()
            )
        ):
            yield variable_name(token), at


def _hidden(tokens: TokenList, within: Range) -> dict[Range, frozenset[str]]:
    """The subqueries of a stretch, also those in others, with the names of their own relations."""
    opened = (at for at in range(*within) if opens_query(tokens, at))
    queries = [(at, tokens.partner[at] + 1) for at in opened]
    return {query: own_relations(tokens, query) for query in queries}


def classifiers(tokens: TokenList, within: Range) -> list[Range]:
    """Where CLASSIFIER() stands beside other values in an argument."""
    return [
        (at, at + 3)
        for at in range(*within)
        if tokens.word(at) == "CLASSIFIER"
        and tokens.is_symbol(at + 1, "(")
        and not tokens.is_symbol(at - 1, ".")
    ]


class _Finder:
    def __init__(
        self, tokens: TokenList, variables: frozenset[str], *, in_define: bool, in_window: bool
    ) -> None:
        self.tokens, self.variables, self.in_define, self.in_window = tokens, variables, in_define, in_window

    def leaves(self, start: int, stop: int) -> Iterator[Leaf]:
        tokens, at = self.tokens, start
        while at < stop:
            if tokens.is_symbol(at - 1, ".") and at > start:
                at += 1
                continue
            if opens_query(tokens, at):
                close = tokens.partner[at]
                yield from self.of_query((at, close + 1))
                at = close + 1
                continue
            self.refuse_over(at)
            leaf = self.call(at, stop) or self.path(at, stop)
            if leaf is not None:
                yield leaf
                at = leaf.range[1]
            else:
                at += 1

    def of_query(self, query: Range) -> Iterator[Leaf]:
        """What a subquery reads of the match: columns of variables, CLASSIFIER and MATCH_NUMBER."""
        tokens, at = self.tokens, query[0]
        qualifiers = {place for _, place in references(tokens, query, self.variables)}
        while at < query[1]:
            leaf: Leaf | None = None
            if at in qualifiers:
                leaf = self.path(at, query[1])
            elif self.is_call(at) and tokens.word(at) in ("CLASSIFIER", "MATCH_NUMBER"):
                leaf = self.call(at, query[1])
            if leaf is not None:
                yield leaf
            at = at + 1 if leaf is None else leaf.range[1]

    def refuse_over(self, at: int) -> None:
        tokens = self.tokens
        if tokens.word(at) == "OVER" and tokens.is_symbol(at - 1, ")"):
            raise self.unsupported("OVER", (at, at + 1), "compute it in a subquery in FROM")

    def unsupported(self, what: str, where: Range, hint: str) -> NotSupportedError:
        return NotSupportedError(
            f"{what} in MATCH_RECOGNIZE is not supported",
            condition="UNSUPPORTED_MEASURE",
            sql=self.tokens.sql,
            span=self.tokens.span(*where),
            hint=hint,
        )

    def wrong(self, condition: str, message: str, where: Range, hint: str) -> WindrowError:
        return AnalysisError(
            message,
            condition=condition,
            sqlstate="42601" if condition != "UNKNOWN_VARIABLE" else "42703",
            sql=self.tokens.sql,
            span=self.tokens.span(*where),
            hint=hint,
        )

    # -- calls -------------------------------------------------------------------------------------

    def is_call(self, at: int) -> bool:
        tokens = self.tokens
        return (
            at < len(tokens)
            and tokens[at].kind is Kind.WORD
            and tokens.is_symbol(at + 1, "(")
            and not tokens.is_symbol(at - 1, ".")
            and tokens.word(at - 1) not in ("LIKE", "ILIKE", "RLIKE")
        )

    def is_aggregate(self, at: int) -> bool:
        word = self.tokens.word(at)
        return self.is_call(at) and word not in _LOGICAL and kernel_function(word.lower()) is not None

    def call(self, at: int, stop: int) -> Leaf | None:
        tokens, first = self.tokens, at
        semantics = ""
        if tokens.word(at) in ("RUNNING", "FINAL") and self.is_call(at + 1) and not self.is_call(at):
            semantics = tokens.word(at)
            at += 1
        word = tokens.word(at) if self.is_call(at) else ""
        logical = word in _LOGICAL
        if semantics and not (logical or self.is_aggregate(at)):
            hint = "RUNNING and FINAL stand before FIRST, LAST and aggregates"
            raise self.wrong("INVALID_NAVIGATION", f"{semantics} stands before {word}", (first, at + 1), hint)
        if semantics == "FINAL" and self.in_define:
            raise self.wrong(
                "FINAL_IN_DEFINE", "FINAL stands in DEFINE, where the match is not complete", (first, at),
                "leave FINAL out",
            )  # fmt: skip
        final = semantics == "FINAL"
        if logical:
            return self.logical(first, at, final, shift=0)
        if word in _PHYSICAL:
            return self.physical(at)
        if word == "CLASSIFIER":
            return self.classifier(at)
        if word == "MATCH_NUMBER":
            close = tokens.partner[at + 1]
            if self.in_window:
                message = "MATCH_NUMBER stands in a window of OVER"
                hint = "leave it out: a row has one match there"
                raise self.wrong("INVALID_NAVIGATION", message, (at, close + 1), hint)
            if close > at + 2:
                hint = "write MATCH_NUMBER()"
                raise self.wrong(
                    "INVALID_NAVIGATION", "MATCH_NUMBER takes no argument", (at, close + 1), hint
                )
            return Numbered((at, close + 1))
        return self.aggregate(first, at, final, stop) if self.is_aggregate(at) else None

    def arguments(self, at: int, default: int) -> tuple[Range, int]:
        """The argument and the offset of a navigation."""
        tokens, close = self.tokens, self.tokens.partner[at + 1]
        items = tokens.split(at + 2, close)
        word = tokens.word(at)
        if not items or len(items) > 2 or any(start >= stop for start, stop in items):
            hint = f"write {word}(a.x) or {word}(a.x, {default + 1})"
            raise self.wrong(
                "INVALID_NAVIGATION", f"{word} takes a value and a number of rows", (at, close + 1), hint
            )
        if len(items) == 1:
            return items[0], default
        start, stop = items[1]
        if stop != start + 1 or tokens[start].kind is not Kind.NUMBER or not tokens[start].text.isdigit():
            hint = "write a whole number from 0 on"
            raise self.wrong(
                "INVALID_NAVIGATION", f"the number of rows of {word} is no constant", (start, stop), hint
            )
        return items[0], int(tokens[start].text)

    def logical(self, first: int, at: int, final: bool, shift: int) -> Navigated:
        argument, offset = self.arguments(at, 0)
        variable, value = self.value(argument, self.tokens.word(at))
        end = self.tokens.partner[at + 1] + 1
        from_first = self.tokens.word(at) == "FIRST"
        return Navigated((first, end), variable, from_first, offset, shift, final, value)

    def physical(self, at: int) -> Navigated:
        tokens = self.tokens
        argument, offset = self.arguments(at, 1)
        shift = -offset if tokens.word(at) == "PREV" else offset
        end = tokens.partner[at + 1] + 1
        start, stop = argument
        prefix = tokens.word(start) in ("RUNNING", "FINAL") and self.is_call(start + 1)
        inner = start + 1 if prefix else start
        if self.is_call(inner) and tokens.word(inner) in _LOGICAL and tokens.partner[inner + 1] + 1 == stop:
            if prefix and tokens.word(start) == "FINAL" and self.in_define:
                raise self.wrong(
                    "FINAL_IN_DEFINE", "FINAL stands in DEFINE, where the match is not complete",
                    (start, inner), "leave FINAL out",
                )  # fmt: skip
            final = prefix and tokens.word(start) == "FINAL"
            nested = self.logical(start, inner, final, shift)
            return Navigated(
                (at, end), nested.variable, nested.from_first, nested.offset, shift, final, nested.argument
            )
        variable, value = self.value(argument, tokens.word(at))
        return Navigated((at, end), variable, False, 0, shift, False, value)

    def classifier(self, at: int) -> Navigated:
        tokens, close = self.tokens, self.tokens.partner[at + 1]
        if close == at + 2:
            return Navigated((at, close + 1), None, False, 0, 0, False, None)
        token = tokens[at + 2]
        if close != at + 3 or not token.is_name:
            hint = "write CLASSIFIER() or CLASSIFIER(a)"
            raise self.wrong("INVALID_NAVIGATION", "CLASSIFIER takes a variable", (at, close + 1), hint)
        if variable_name(token) not in self.variables:
            raise self.unknown(at + 2)
        return Navigated((at, close + 1), variable_name(token), False, 0, 0, False, None)

    def unknown(self, at: int) -> WindrowError:
        name = variable_name(self.tokens[at])
        hint = did_you_mean(name, self.variables) or f"there are {', '.join(sorted(self.variables))}"
        return self.wrong("UNKNOWN_VARIABLE", f"variable {name} is not in PATTERN", (at, at + 1), hint)

    def value(self, argument: Range, around: str) -> tuple[str | None, Range | None]:
        """The variable of a navigation's or an aggregate's argument, and the argument; None: CLASSIFIER."""
        start, stop = argument
        tokens = self.tokens
        if (
            self.is_call(start)
            and tokens.word(start) == "CLASSIFIER"
            and tokens.partner[start + 1] + 1 == stop
        ):
            return self.classifier(start).variable, None
        at = start
        while at < stop:
            if opens_query(tokens, at):
                at = tokens.partner[at]
            else:
                self.refuse_over(at)
                self.refuse_inside(at, around)
            at += 1
        found = list(references(tokens, argument, self.variables))
        for name, at in found[1:]:
            if name != found[0][0]:
                hint = f"all columns in one {around} are of one variable; SUBSET makes one of several"
                message = f"variables {found[0][0]} and {name} stand in one {around}"
                raise self.wrong("MIXED_VARIABLES", message, (at, at + 3), hint)
        return (found[0][0] if found else None), argument

    def refuse_inside(self, at: int, around: str) -> None:
        """Refuse what cannot be evaluated at one row."""
        if not self.is_call(at):
            return
        word, tokens = self.tokens.word(at), self.tokens
        where = (at, tokens.partner[at + 1] + 1)
        if word in (*_LOGICAL, *_PHYSICAL):
            hint = "FIRST and LAST may stand in PREV and NEXT, as their whole argument: PREV(LAST(a.x, 2), 1)"
            raise self.wrong("NESTED_NAVIGATION", f"{word} stands in {around}", where, hint)
        if self.is_aggregate(at):
            hint = "give it a measure of its own, and combine the measures in a query around"
            raise self.wrong("NESTED_AGGREGATE", f"aggregate {word} stands in {around}", where, hint)
        by_label = word == "CLASSIFIER" and where[1] == at + 3 and around not in _PHYSICAL
        if word in ("CLASSIFIER", "MATCH_NUMBER") and (self.in_define or not by_label):
            hint = f"write {around}({word}())"
            if word == "MATCH_NUMBER":
                hint = "write it outside: it is one number for all rows of a match"
            raise self.unsupported(f"{word} within {around} beside other values", where, hint)

    def aggregate(self, first: int, at: int, final: bool, stop: int) -> Aggregation:
        tokens, close = self.tokens, self.tokens.partner[at + 1]
        end, word = close + 1, tokens.word(at)
        function = kernel_function(word.lower())
        if tokens.word(end) in ("WITHIN", "IGNORE", "RESPECT") and end < stop:
            return self.of_spark(first, at, final, stop)
        if tokens.word(end) == "FILTER" and tokens.word(end + 2) == "WHERE" and end < stop:
            return self.filtered(first, at, final, stop)
        start = at + 2
        if tokens.word(start) == "DISTINCT":
            start += 1
            distinct = {"count": "count_distinct", "min": "min", "max": "max"}
            function = "" if tokens.is_symbol(close - 1, "*") else distinct.get(function or "", "")
        if not function or len(tokens.split(start, close)) != 1:
            return self.of_spark(first, at, final, stop)
        span = (first, end)
        if function == "count" and tokens.is_symbol(start, "*") and close == start + 1:
            return Aggregation(span, None, "count_star", final, None)
        is_star = close == start + 3 and tokens.is_symbol(start + 1, ".") and tokens.is_symbol(start + 2, "*")
        if function == "count" and is_star:
            if variable_name(tokens[start]) not in self.variables:
                raise self.unknown(start)
            return Aggregation(span, variable_name(tokens[start]), "count_star", final, None)
        variable, argument = self.value((start, close), word)
        return Aggregation(span, variable, function, final, argument, of_classifier=argument is None)

    def filtered(self, first: int, at: int, final: bool, stop: int) -> Aggregation:
        """An aggregate with FILTER: over what is left NULL for the other rows."""
        tokens, end = self.tokens, self.tokens.partner[at + 1] + 1
        after = tokens.partner[end + 1] + 1
        condition = (end + 3, after - 1)
        whole = self.aggregate(first, at, final, end)
        if whole.call is not None or whole.of_classifier or whole.function in _KEEP_NULLS:
            return self.of_spark(first, at, final, stop)
        variable = self.shared_variable([condition], tokens.word(at), whole.variable)
        function = "count" if whole.function == "count_star" else whole.function
        return Aggregation((first, after), variable, function, final, whole.argument, filter=condition)

    def of_spark(self, first: int, at: int, final: bool, stop: int) -> Aggregation:
        """An aggregate that the kernel lacks, which Spark evaluates over the rows of the match."""
        tokens, end = self.tokens, self.tokens.partner[at + 1] + 1
        start = at + 2 + (tokens.word(at + 2) in ("DISTINCT", "ALL"))
        arguments = [] if start >= end - 1 else tokens.split(start, end - 1)
        condition = None
        if tokens.word(end) in ("IGNORE", "RESPECT") and end < stop:
            end += 2
        if tokens.word(end) == "WITHIN" and tokens.is_symbol(end + 2, "(") and end < stop:
            close = tokens.partner[end + 2]
            arguments += [order_item(tokens, item).expression for item in tokens.split(end + 5, close)]
            end = close + 1
        if tokens.word(end) == "FILTER" and tokens.is_symbol(end + 1, "(") and end < stop:
            close = tokens.partner[end + 1]
            condition = (end + 3, close)
            end = close + 1
        self.refuse_of_spark((first, end), at, arguments)
        parts = [*arguments, *([] if condition is None else [condition])]
        variable = self.shared_variable(parts, tokens.word(at), None)
        return Aggregation(
            (first, end), variable, "collect_list", final, None,
            filter=condition, call=(at, end), arguments=tuple(arguments),
        )  # fmt: skip

    def refuse_of_spark(self, where: Range, at: int, arguments: list[Range]) -> None:
        """Refuse what Spark cannot evaluate over rows without an order, or while a match is looked for."""
        tokens = self.tokens
        if self.in_define:
            hint = "collect_list, COUNT, SUM, AVG, MIN, MAX and their kin may stand in DEFINE"
            raise self.unsupported(f"aggregate {tokens.text(at, where[1])} in DEFINE", where, hint)
        if kernel_function(tokens.word(at).lower()) in _KEEP_NULLS:
            what = tokens.text(tokens.partner[at + 1] + 1, where[1])
            hint = "FIRST and LAST of a SUBSET or a variable, or collect_list(CASE WHEN … THEN x END)[0]"
            raise self.unsupported(f"{what} after {tokens.word(at)}", where, hint)
        for item in arguments:
            if tokens.is_symbol(item[1] - 1, "*"):
                raise self.unsupported(f"a star in {tokens.text(at, where[1])}", item, "name the columns")
            if self.value(item, tokens.word(at))[1] is None and item[1] > item[0] + 3:
                hint = "write CLASSIFIER(); the other arguments say of which variable the rows are"
                raise self.unsupported(f"{tokens.text(*item)} in {tokens.text(at, where[1])}", item, hint)

    def shared_variable(self, parts: list[Range], word: str, variable: str | None) -> str | None:
        """The one variable of which the parts of an aggregate are."""
        for part in parts:
            found, _ = self.value(part, word)
            if None not in (found, variable) and found != variable:
                hint = f"all columns in one {word} are of one variable; SUBSET makes one of several"
                message = f"variables {variable} and {found} stand in one {word}"
                raise self.wrong("MIXED_VARIABLES", message, part, hint)
            variable = variable or found
        return variable

    # -- paths -------------------------------------------------------------------------------------

    def path(self, at: int, stop: int) -> Navigated | None:
        """A column of a variable, with the fields after it."""
        tokens = self.tokens
        if not tokens[at].is_name or variable_name(tokens[at]) not in self.variables:
            return None
        if not tokens.is_symbol(at + 1, ".") or at + 2 >= stop:
            return None
        if tokens.is_symbol(at + 2, "*"):
            hint = "COUNT(a.*) counts the rows; name the columns of others"
            raise self.wrong("INVALID_NAVIGATION", "a star stands for no value", (at, at + 3), hint)
        end = at + 1
        while end + 1 < stop and tokens.is_symbol(end, ".") and tokens[end + 1].is_name:
            end += 2
        return Navigated((at, end), variable_name(tokens[at]), False, 0, 0, False, (at, end))
