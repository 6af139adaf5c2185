"""Finds the parts of a MATCH_RECOGNIZE expression that read the match: navigations, aggregates, numbers.

Each is a range of tokens whose value is computed at some rows of the match. The rest is an expression of
these values, which Spark checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windrow.algebra.aggregate_calls import kernel_function
from windrow.algebra.scopes import is_of_subquery
from windrow.errors import AnalysisError, NotSupportedError, WindrowError, did_you_mean
from windrow.syntax.nodes import Range, is_within
from windrow.syntax.operands import is_of_lambda
from windrow.syntax.order_by import order_item
from windrow.syntax.patterns.match_nodes import variable_name
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = [
    "Aggregation",
    "Leaf",
    "Navigated",
    "Numbered",
    "classifiers",
    "find_leaves",
    "match_numbers",
    "references",
]

_LOGICAL, _PHYSICAL = ("FIRST", "LAST"), ("PREV", "NEXT")
_KEEP_NULLS = ("first", "last", "any_value")


@dataclass(frozen=True, slots=True)
class Navigated:
    """A value at one row: FIRST or LAST of `variable` (None: of all rows) but `offset`, `shift` rows on.

    `argument` is the expression over that row; None for CLASSIFIER().
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

    `function` is the kernel's name, empty if the kernel lacks the aggregate: then Spark evaluates `call`, the
    range of text whose `arguments` are values of one row. `argument` is the one of the kernel's; it is None
    for a count of rows, and if `of_classifier`. `filter` is the condition of the rows that count. `nth` says
    which value of a list is meant, from 1. `is_own` says that it is one of the user's own.
    """

    range: Range
    variable: str | None
    function: str
    final: bool
    argument: Range | None
    call: Range
    arguments: tuple[Range, ...]
    of_classifier: bool = False
    filter: Range | None = None
    ignore_nulls: bool = False
    nth: int | None = None
    is_own: bool = False

    @property
    def keeps_nulls(self) -> bool:
        """Whether a row counts if its value is NULL."""
        return self.function in _KEEP_NULLS and not self.ignore_nulls


@dataclass(frozen=True, slots=True)
class Numbered:
    """MATCH_NUMBER()."""

    range: Range


Leaf = Navigated | Aggregation | Numbered


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of an aggregate: its arguments, and the token after it."""

    end: int
    arguments: tuple[Range, ...]
    is_distinct: bool
    in_order: bool
    ignores_nulls: bool
    filter: Range | None


def _parts_of_call(tokens: TokenList, at: int, stop: int) -> _Call:
    """The aggregate that is called at a token; expressions in WITHIN GROUP are arguments too."""
    end = tokens.partner[at + 1] + 1
    start = at + 2 + (tokens.word(at + 2) in ("DISTINCT", "ALL"))
    arguments = [] if start >= end - 1 else tokens.split(start, end - 1)
    ignores_nulls, in_order, condition = False, False, None
    if kernel_function(tokens.word(at).lower()) in _KEEP_NULLS and len(arguments) == 2:
        word = tokens.word(arguments[1][0])
        if word in ("TRUE", "FALSE") and arguments[1][1] == end - 1:
            ignores_nulls, arguments = word == "TRUE", arguments[:1]
    if tokens.word(end) in ("IGNORE", "RESPECT") and end < stop:
        ignores_nulls = tokens.word(end) == "IGNORE"
        end += 2
    if tokens.word(end) == "WITHIN" and tokens.is_symbol(end + 2, "(") and end < stop:
        in_order, close = True, tokens.partner[end + 2]
        arguments += [order_item(tokens, item).expression for item in tokens.split(end + 5, close)]
        end = close + 1
    if tokens.word(end) == "FILTER" and tokens.is_symbol(end + 1, "(") and end < stop:
        close = tokens.partner[end + 1]
        condition = (end + 3, close)
        end = close + 1
    return _Call(end, tuple(arguments), tokens.word(at + 2) == "DISTINCT", in_order, ignores_nulls, condition)


def find_leaves(
    tokens: TokenList,
    expression: Range,
    variables: frozenset[str],
    *,
    in_define: bool,
    in_window: bool = False,
    own: frozenset[str] = frozenset(),
) -> tuple[Leaf, ...]:
    """Everything in an expression that reads the match, in order; plain column names are not listed.

    Matches of a window of OVER have no numbers. `own` are the names of the user's aggregates.

    Raises
    ------
    AnalysisError
        ``FINAL_IN_DEFINE``, ``NESTED_AGGREGATE``, ``NESTED_NAVIGATION``, ``MIXED_VARIABLES``,
        ``INVALID_NAVIGATION``, ``UNKNOWN_VARIABLE``.
    NotSupportedError
        ``UNSUPPORTED_MEASURE``.
    """
    finder = _Finder(tokens, variables, own, in_define=in_define, in_window=in_window)
    return tuple(finder.leaves(*expression))


def references(tokens: TokenList, within: Range, variables: frozenset[str]) -> Iterator[tuple[str, int]]:
    """The variables that qualify columns in a range, with their tokens.

    In a subquery a relation, a window or a variable of its own hides the variable of its name, and so does a
    parameter of a lambda function.
    """
    for at in range(*within):
        token = tokens[at]
        is_qualifier = tokens.is_symbol(at + 1, ".") and at + 2 < within[1]
        if (
            token.is_name
            and is_qualifier
            and not tokens.is_symbol(at - 1, ".")
            and variable_name(token) in variables
            and not is_of_subquery(tokens, at, within[0])
            and not is_of_lambda(tokens, at)
        ):
            yield variable_name(token), at


def classifiers(tokens: TokenList, within: Range) -> list[Range]:
    """The positions of CLASSIFIER() and CLASSIFIER(a) in an argument."""
    return _calls_of("CLASSIFIER", tokens, within)


def match_numbers(tokens: TokenList, within: Range) -> list[Range]:
    """The positions of MATCH_NUMBER() in an argument."""
    return _calls_of("MATCH_NUMBER", tokens, within)


def _calls_of(word: str, tokens: TokenList, within: Range) -> list[Range]:
    return [
        (at, tokens.partner[at + 1] + 1)
        for at in range(*within)
        if tokens.word(at) == word and tokens.is_symbol(at + 1, "(") and not tokens.is_symbol(at - 1, ".")
    ]


class _Finder:
    def __init__(
        self,
        tokens: TokenList,
        variables: frozenset[str],
        own: frozenset[str],
        *,
        in_define: bool,
        in_window: bool,
    ) -> None:
        self.tokens, self.variables, self.own = tokens, variables, own
        self.in_define, self.in_window = in_define, in_window

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
        inner = [one.range for one in find_matches(tokens) if is_within(one.range, query)]
        while at < query[1]:
            leaf: Leaf | None = None
            is_call = tokens.word(at) in ("CLASSIFIER", "MATCH_NUMBER") and self.is_call(at)
            if at in qualifiers:
                leaf = self.path(at, query[1])
            elif is_call and not any(is_within((at, at + 1), match) for match in inner):
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
            and tokens[at].kind is TokenKind.WORD
            and tokens.is_symbol(at + 1, "(")
            and not tokens.is_symbol(at - 1, ".")
            and tokens.word(at - 1) not in ("LIKE", "ILIKE", "RLIKE")
        )

    def is_aggregate(self, at: int) -> bool:
        word = self.tokens.word(at)
        is_known = kernel_function(word.lower()) is not None or word.lower() in self.own
        return self.is_call(at) and word not in _LOGICAL and is_known

    def call(self, at: int, stop: int) -> Leaf | None:
        tokens, first = self.tokens, at
        semantics = ""
        if tokens.word(at) in ("RUNNING", "FINAL") and self.is_call(at + 1) and not self.is_call(at):
            semantics = tokens.word(at)
            at += 1
        word = tokens.word(at) if self.is_call(at) else ""
        logical = word in _LOGICAL
        if semantics and not (logical or self.is_aggregate(at)):
            hint = "write RUNNING or FINAL before FIRST, LAST or an aggregate only"
            raise self.wrong(
                "INVALID_NAVIGATION", f"{semantics} cannot be applied to {word}", (first, at + 1), hint
            )
        if semantics == "FINAL" and self.in_define:
            raise self.wrong(
                "FINAL_IN_DEFINE", "FINAL cannot be used in DEFINE: the match is not complete", (first, at),
                "leave FINAL out",
            )  # fmt: skip
        final = semantics == "FINAL"
        if logical:
            return self.logical(first, at, final, shift=0)
        if word in _PHYSICAL:
            return self.physical(at)
        if word == "NTH_VALUE" and self.in_window:
            return self.nth_value(at)
        if word == "CLASSIFIER":
            return self.classifier(at)
        if word == "MATCH_NUMBER":
            close = tokens.partner[at + 1]
            if self.in_window:
                message = "MATCH_NUMBER cannot be used in a window of OVER"
                hint = "leave it out: each row has at most one match there"
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
        if (
            stop != start + 1
            or tokens[start].kind is not TokenKind.NUMBER
            or not tokens[start].text.isdigit()
        ):
            hint = "write a whole number of 0 or more"
            raise self.wrong(
                "INVALID_NAVIGATION", f"the number of rows of {word} is not a constant", (start, stop), hint
            )
        return items[0], int(tokens[start].text)

    def nth_value(self, at: int) -> Navigated | Aggregation:
        """The value at the row of this number among those of a window's match, counted from 1.

        Without NULLs it is an element of the list of values.
        """
        argument, number = self.arguments(at, 0)
        end = self.tokens.partner[at + 1] + 1
        if number < 1:
            hint = "write nth_value(x, 2), with a number of 1 or more"
            raise self.wrong("INVALID_NAVIGATION", "nth_value needs the number of a row", (at, end), hint)
        variable, value = self.value(argument, "nth_value")
        behind = self.tokens.word(end)
        end += 2 * (behind in ("IGNORE", "RESPECT"))
        if behind != "IGNORE" or value is None:
            return Navigated((at, end), variable, True, number - 1, 0, True, value)
        call = (at, end)
        return Aggregation(call, variable, "collect_list", True, value, call, (argument,), nth=number)

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
                    "FINAL_IN_DEFINE", "FINAL cannot be used in DEFINE: the match is not complete",
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
        hint = did_you_mean(name, self.variables) or f"use one of {', '.join(sorted(self.variables))}"
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
        named = [at + 2 for at, end in classifiers(tokens, argument) if end > at + 3]
        found = [*references(tokens, argument, self.variables)]
        found = sorted([*found, *((variable_name(tokens[at]), at) for at in named)], key=lambda one: one[1])
        for name, at in found[1:]:
            if name != found[0][0]:
                hint = f"use columns of one variable in {around}; SUBSET combines several variables"
                message = f"{around} reads columns of both {found[0][0]} and {name}"
                where = (at, at + 1) if at in named else (at, at + 3)
                raise self.wrong("MIXED_VARIABLES", message, where, hint)
        return (found[0][0] if found else None), argument

    def refuse_inside(self, at: int, around: str) -> None:
        """Refuse what cannot be evaluated at one row."""
        if not self.is_call(at):
            return
        word, tokens = self.tokens.word(at), self.tokens
        where = (at, tokens.partner[at + 1] + 1)
        if word in (*_LOGICAL, *_PHYSICAL):
            hint = "nest FIRST or LAST in PREV or NEXT only, as the whole argument: PREV(LAST(a.x, 2), 1)"
            raise self.wrong("NESTED_NAVIGATION", f"{word} cannot be used inside {around}", where, hint)
        if self.is_aggregate(at):
            hint = "add a measure for it, and combine the measures in an outer query"
            raise self.wrong(
                "NESTED_AGGREGATE", f"aggregate {word} cannot be used inside {around}", where, hint
            )
        if word in ("CLASSIFIER", "MATCH_NUMBER"):
            self.call(at, where[1])

    def aggregate(self, first: int, at: int, final: bool, stop: int) -> Aggregation:
        tokens, word = self.tokens, self.tokens.word(at)
        parts = _parts_of_call(tokens, at, stop)
        call, function = (at, parts.end), self.kernel_name(at, parts)
        numbered = any(match_numbers(tokens, part) for part in (*parts.arguments, parts.filter or (at, at)))
        if function and not numbered and self.counts_rows(parts):
            variable = None
            if tokens.is_symbol(parts.arguments[0][0] + 1, "."):
                variable = variable_name(tokens[parts.arguments[0][0]])
            argument: Range | None = None
            function = "count_star" if parts.filter is None else "count"
        elif function and not numbered:
            variable, argument = self.value(parts.arguments[0], word)
            if argument is None and parts.filter is not None:
                function = ""
        else:
            function = ""
        if not function:
            self.refuse_of_spark((first, parts.end), at, parts.arguments)
            variable, argument = self.shared_variable(parts.arguments, word, None), None
        if parts.filter is not None:
            variable = self.shared_variable([parts.filter], word, variable)
        of_classifier = function not in ("", "count_star") and argument is None and parts.filter is None
        found = Aggregation(
            (first, parts.end), variable, function, final, argument, call, tuple(parts.arguments),
            of_classifier, parts.filter, parts.ignores_nulls, is_own=word.lower() in self.own,
        )  # fmt: skip
        return found

    def kernel_name(self, at: int, parts: _Call) -> str:
        """The kernel's name of a called aggregate; empty if it lacks that."""
        function = kernel_function(self.tokens.word(at).lower()) or ""
        if len(parts.arguments) != 1 or parts.in_order:
            return ""
        if parts.is_distinct:
            # of equal values one is as good as all for the functions that return one of them
            known = {"count": "count_distinct"} | {name: name for name in ("min", "max", *_KEEP_NULLS)}
            return "" if self.tokens.is_symbol(parts.arguments[0][1] - 1, "*") else known.get(function, "")
        return function

    def counts_rows(self, parts: _Call) -> bool:
        """Whether the argument is a star, which stands for the rows of all or of one variable."""
        tokens, (start, stop) = self.tokens, parts.arguments[0]
        if not tokens.is_symbol(stop - 1, "*") or stop - start not in (1, 3):
            return False
        if stop - start == 3:
            if not tokens.is_symbol(start + 1, "."):
                return False
            if variable_name(tokens[start]) not in self.variables:
                raise self.unknown(start)
        return True

    def refuse_of_spark(self, where: Range, at: int, arguments: Sequence[Range]) -> None:
        """Refuse what Spark cannot evaluate over rows without an order."""
        tokens = self.tokens
        if kernel_function(tokens.word(at).lower()) in _KEEP_NULLS:
            raise self.unsupported(tokens.text(at, where[1]), where, "write FIRST or LAST of the same value")
        for item in arguments:
            if tokens.is_symbol(item[1] - 1, "*") and (tokens.word(at) != "COUNT" or len(arguments) > 1):
                raise self.unsupported(f"a star in {tokens.text(at, where[1])}", item, "name the columns")

    def shared_variable(self, parts: Sequence[Range], word: str, variable: str | None) -> str | None:
        """The only variable that the parts of an aggregate refer to."""
        for part in parts:
            found, _ = self.value(part, word)
            if None not in (found, variable) and found != variable:
                hint = f"use columns of one variable in {word}; SUBSET combines several variables"
                message = f"{word} reads columns of both {variable} and {found}"
                raise self.wrong("MIXED_VARIABLES", message, part, hint)
            variable = variable or found
        return variable

    # -- paths -------------------------------------------------------------------------------------

    def path(self, at: int, stop: int) -> Navigated | None:
        """A column of a variable, with the fields after it."""
        tokens = self.tokens
        if not tokens[at].is_name or variable_name(tokens[at]) not in self.variables:
            return None
        if not tokens.is_symbol(at + 1, ".") or at + 2 >= stop or is_of_lambda(tokens, at):
            return None
        if tokens.is_symbol(at + 2, "*"):
            hint = "name a column; COUNT(a.*) counts the rows of a variable"
            raise self.wrong("INVALID_NAVIGATION", "a star is not a value", (at, at + 3), hint)
        end = at + 1
        while end + 1 < stop and tokens.is_symbol(end, ".") and tokens[end + 1].is_name:
            end += 2
        return Navigated((at, end), variable_name(tokens[at]), False, 0, 0, False, (at, end))
