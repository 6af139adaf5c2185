"""The skeleton of a Spark SQL expression: enough to see what each part of a predicate reads.

Operators, predicates, calls and names are parsed, and on request CASE, CAST, ``||`` and LIKE. Anything else
in Spark's SQL (lambdas, subscripts, subqueries) is an :class:`Opaque` range with the names in it. The parser
never refuses a text: what it cannot parse is opaque, and Spark checks it. Precedence is Spark's
(``SqlBaseParser.g4``: OR < AND < NOT < predicates < | < ^ < & < shifts < + - || < * / % DIV < unary).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from windrow.syntax.expression_nodes import (
    Call,
    Expression,
    Literal,
    Name,
    Opaque,
    OperationNode,
    names_in,
)
from windrow.syntax.nodes import Range
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["Atoms", "parse_expression"]


_COMPARISONS = {"=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"}
_CANONICAL = {"==": "=", "!=": "<>"}
_BINARY = [
    {"|"},
    {"^"},
    {"&"},
    {"<<", ">>", ">>>"},
    {"+", "-", "||"},
    {"*", "/", "%", "DIV"},
]
_LEVELS = {operator: level for level, operators in enumerate(_BINARY) for operator in operators}
_KNOWN_BINARY = {"+", "-", "*", "/", "%", "DIV"}
_NOT_NAMES = {
    "CASE",
    "CAST",
    "TRY_CAST",
    "INTERVAL",
    "EXISTS",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ",
    "TIME",
}
_NESTED, _HIGHEST = 40, 120
"""The limits of nesting of brackets, calls and CASE, and of operations: functions over expressions are
recursive.
"""
_CONSTANTS = {"TRUE", "FALSE", "NULL"}
_WITH_UNITS = {"timestampdiff", "datediff", "date_diff", "timestampadd", "dateadd", "date_add"}


class _UnknownFormError(Exception):
    """The range has a form that this parser does not support."""


Atoms = Mapping[int, Expression]
"""Substitutes for ranges, by their first tokens: names, or expressions made of names."""


def parse_expression(
    tokens: TokenList,
    start: int,
    stop: int,
    atoms: Atoms | None = None,
    *,
    deeply: bool = False,
    alone: Collection[int] | None = None,
) -> Expression:
    """The expression between tokens `start` and `stop`, with `atoms` as substitutes.

    `deeply` also parses CASE, CAST, ``||``, LIKE, and functions with a unit of time. With `alone`, the text
    around subqueries is parsed too: those that open at its tokens mention no outer names except atoms.
    """
    try:
        parser = _Parser(tokens, start, stop, atoms or {}, deeply, alone)
        found = parser.disjunction()
        if parser.at != stop or _is_high(found):
            raise _UnknownFormError
    except _UnknownFormError:
        return Opaque(tuple(_paths(tokens, start, stop, atoms or {}, alone or ())), (start, stop))
    return found


def _is_high(expression: Expression) -> bool:
    """Whether operations and calls are nested more deeply than the parser supports."""
    height, level = 0, [expression]
    while level and height <= _HIGHEST:
        height += 1
        level = [
            part
            for one in level
            if isinstance(one, OperationNode | Call)
            for part in (one.operands if isinstance(one, OperationNode) else one.arguments)
        ]
    return height > _HIGHEST


def _paths(
    tokens: TokenList, start: int, stop: int, atoms: Atoms, alone: Collection[int] = ()
) -> Iterator[Name]:
    """Dotted paths of a range, except function names and the like if their form shows them.

    In subqueries that stand `alone`, only atoms.
    """
    at = start
    while at < stop:
        if at in atoms:
            yield from names_in(atoms[at])
            at = atoms[at].range[1]
            continue
        if at in alone:
            close = tokens.partner[at]
            for inner in range(at, close):
                if inner in atoms:
                    yield from names_in(atoms[inner])
            at = close + 1
            continue
        if not tokens[at].is_name or tokens.is_symbol(at - 1, ".") or tokens.is_symbol(at - 1, ":"):
            at += 1
            continue
        first, parts = at, [tokens[at].name]
        at += 1
        while at + 1 < stop and tokens.is_symbol(at, ".") and tokens[at + 1].is_name:
            parts.append(tokens[at + 1].name)
            at += 2
        if not (tokens.is_symbol(at, "(") and tokens[at - 1].kind is TokenKind.WORD and at < stop):
            yield Name(tuple(parts), (first, at))


class _Parser:
    def __init__(
        self,
        tokens: TokenList,
        start: int,
        stop: int,
        atoms: Atoms,
        deeply: bool,
        alone: Collection[int] | None,
        depth: int = 0,
    ) -> None:
        self.tokens, self.at, self.stop, self.atoms, self.deeply = tokens, start, stop, atoms, deeply
        self.alone, self.depth = alone, depth

    def inner(self, start: int, stop: int) -> Expression:
        """The expression between these tokens."""
        if self.depth >= _NESTED:
            raise _UnknownFormError
        parser = _Parser(self.tokens, start, stop, self.atoms, self.deeply, self.alone, self.depth + 1)
        found = parser.disjunction()
        if parser.at != stop:
            raise _UnknownFormError
        return found

    def word(self) -> str:
        return self.tokens.word(self.at) if self.at < self.stop else ""

    def symbol(self) -> str:
        if self.at >= self.stop or self.tokens[self.at].kind is not TokenKind.SYMBOL:
            return ""
        return self.tokens[self.at].text

    def take(self, word: str) -> bool:
        if self.word() == word:
            self.at += 1
            return True
        return False

    def need(self, word: str) -> None:
        if not self.take(word):
            raise _UnknownFormError

    # -- Boolean level ---------------------------------------------------------------------------

    def disjunction(self) -> Expression:
        return self.chain("OR", self.conjunction)

    def conjunction(self) -> Expression:
        return self.chain("AND", self.negation)

    def chain(self, word: str, operand: object) -> Expression:
        assert callable(operand)
        start = self.at
        parts = [operand()]
        while self.take(word):
            parts.append(operand())
        return parts[0] if len(parts) == 1 else OperationNode(word, tuple(parts), (start, self.at))

    def negation(self) -> Expression:
        words = []
        while self.word() == "NOT" or self.symbol() == "!":
            words.append(self.at)
            self.at += 1
        found = self.predicate()
        for place in reversed(words):
            found = OperationNode("NOT", (found,), (place, self.at))
        return found

    def predicate(self) -> Expression:
        start = self.at
        left = self.arithmetic()
        while True:
            if self.symbol() in _COMPARISONS:
                operator = self.tokens[self.at].text
                self.at += 1
                right = self.arithmetic()
                left = OperationNode(_CANONICAL.get(operator, operator), (left, right), (start, self.at))
                continue
            if self.word() in ("IS", "NOT", "IN", "BETWEEN"):
                left = self.worded_predicate(left, start)
            elif self.word() in ("LIKE", "ILIKE", "RLIKE", "REGEXP"):
                left = self.pattern(start, left)
            else:
                return left
            if self.symbol() in _COMPARISONS:
                # to Spark it belongs to the last operand: a BETWEEN b AND (c = d)
                raise _UnknownFormError

    def pattern(self, start: int, left: Expression) -> Expression:
        is_like = self.word() == "LIKE"
        self.at += 1
        if self.word() in ("ANY", "ALL", "SOME"):
            raise _UnknownFormError
        right = self.arithmetic()
        if self.take("ESCAPE"):
            self.at += 1
        elif self.deeply and is_like:
            return OperationNode("LIKE", (left, right), (start, self.at))
        return self.opaque(start, self.at)

    def worded_predicate(self, left: Expression, start: int) -> Expression:
        negated_word = self.tokens.word(self.at + 1) if self.word() == "NOT" else ""
        if negated_word in ("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            self.at += 1
            found = self.pattern(start, left)
            return (
                OperationNode("NOT", (found,), (start, self.at))
                if isinstance(found, OperationNode)
                else found
            )
        if self.take("IS"):
            negated = self.take("NOT")
            if self.take("NULL"):
                found = OperationNode("IS NULL", (left,), (start, self.at))
            elif self.take("DISTINCT"):
                self.need("FROM")
                right = self.arithmetic()
                found = OperationNode("<=>", (left, right), (start, self.at))
                negated = not negated
            elif self.word() in ("TRUE", "FALSE", "UNKNOWN"):
                self.at += 1
                return self.opaque(start, self.at)
            else:
                raise _UnknownFormError
        else:
            negated = self.take("NOT")
            if self.take("IN"):
                if self.opens_query():
                    self.at = self.tokens.partner[self.at] + 1
                    return self.opaque(start, self.at)
                items = self.arguments()
                found = OperationNode("IN", (left, *items), (start, self.at))
            elif self.take("BETWEEN"):
                low = self.arithmetic()
                self.need("AND")
                high = self.arithmetic()
                found = OperationNode("BETWEEN", (left, low, high), (start, self.at))
            else:
                raise _UnknownFormError
        return OperationNode("NOT", (found,), (start, self.at)) if negated else found

    # -- arithmetic ------------------------------------------------------------------------------

    def arithmetic(self, level: int = 0) -> Expression:
        """Operands and the operators between them that bind at least as tightly as those of `level`."""
        start = self.at
        left = self.unary()
        is_opaque = False
        while (binds := _LEVELS.get(operator := self.symbol() or self.word(), -1)) >= level:
            before = self.at
            self.at += 1
            right = self.arithmetic(binds + 1)
            if operator in _KNOWN_BINARY or (self.deeply and operator == "||"):
                left = self.opaque(start, before) if is_opaque else left
                left, is_opaque = OperationNode(operator, (left, right), (start, self.at)), False
            else:
                is_opaque = True
        return self.opaque(start, self.at) if is_opaque else left

    def unary(self) -> Expression:
        start, signs = self.at, []
        while self.symbol() in ("-", "+", "~"):
            signs.append(self.at)
            self.at += 1
        if not signs:
            return self.postfix()
        found = self.postfix()
        symbols = [self.tokens[place].text for place in signs]
        if "~" in symbols:
            return self.opaque(start, self.at)
        for place, symbol in zip(reversed(signs), reversed(symbols), strict=True):
            to = place, self.at
            found = OperationNode("NEG", (found,), to) if symbol == "-" else _widened(found, to)
        return found

    def postfix(self) -> Expression:
        start = self.at
        found = self.primary()
        is_opaque = False
        while self.symbol() in ("[", "::", ".", ":"):
            # subscripts, casts, fields of expressions and variant paths: not taken apart
            before, symbol = self.at, self.symbol()
            self.at = self.tokens.partner[self.at] + 1 if symbol == "[" else self.at + 2
            if symbol == "::" and self.symbol() == "(":
                self.at = self.tokens.partner[self.at] + 1
            if self.at > self.stop:
                raise _UnknownFormError
            if symbol == "::" and self.deeply:
                found = self.opaque(start, before) if is_opaque else found
                found, is_opaque = Call("cast", (found,), (start, self.at)), False
            else:
                is_opaque = True
        return self.opaque(start, self.at) if is_opaque else found

    def primary(self) -> Expression:
        if self.at >= self.stop:
            raise _UnknownFormError
        if self.at in self.atoms:
            atom = self.atoms[self.at]
            self.at = atom.range[1]
            return atom
        start, token = self.at, self.tokens[self.at]
        if token.kind in (TokenKind.NUMBER, TokenKind.STRING):
            self.at += 1
            while (
                self.at < self.stop
                and token.kind is TokenKind.STRING
                and self.tokens[self.at].kind is TokenKind.STRING
            ):
                self.at += 1
            return Literal((start, self.at))
        if token.is_symbol("?"):
            self.at += 1
            return Literal((start, self.at))
        if token.is_symbol(":") and self.at + 1 < self.stop and self.tokens[self.at + 1].is_name:
            self.at += 2
            return Literal((start, self.at))
        if self.opens_query():
            self.at = self.tokens.partner[self.at] + 1
            return self.opaque(start, self.at)
        if token.is_symbol("("):
            return self.parenthesised()
        if not token.is_name:
            raise _UnknownFormError
        if token.word in _CONSTANTS:
            self.at += 1
            return Literal((start, self.at))
        if token.word in ("CASE", "INTERVAL"):
            return self.case() if token.word == "CASE" else self.interval()
        typed = (
            token.word in _NOT_NAMES
            and self.at + 1 < self.stop
            and self.tokens[self.at + 1].kind is TokenKind.STRING
        )
        if typed:
            self.at += 2
            return self.opaque(start, self.at)
        return self.name_or_call()

    def parenthesised(self) -> Expression:
        start, close = self.at, self.tokens.partner[self.at]
        first, last = start + 1, close
        while self.tokens.is_symbol(first, "(") and self.tokens.partner[first] == last - 1:
            if self.alone is not None and opens_query(self.tokens, first):
                break
            first, last = first + 1, last - 1
        if self.tokens.word(first) in ("SELECT", "WITH", "VALUES", "FROM", "TABLE"):
            raise _UnknownFormError
        self.at = close + 1
        if self.depth >= _NESTED:
            return self.opaque(start, self.at)
        return _widened(self.inner(first, last), (start, self.at))

    def name_or_call(self) -> Expression:
        start = self.at
        parts = [self.tokens[self.at].name]
        self.at += 1
        while self.symbol() == "." and self.at + 1 < self.stop and self.tokens[self.at + 1].is_name:
            parts.append(self.tokens[self.at + 1].name)
            self.at += 2
        if self.symbol() != "(":
            return Name(tuple(parts), (start, self.at))
        close = self.tokens.partner[self.at]
        try:
            function = parts[0].lower()
            if self.deeply and len(parts) == 1 and function in ("cast", "try_cast"):
                return self.cast(function, start, close)
            if len(parts) > 1 or parts[0].upper() in _NOT_NAMES:
                raise _UnknownFormError
            if self.deeply and function in _WITH_UNITS and self.tokens.is_symbol(self.at + 2, ","):
                pieces = self.tokens.split(self.at + 1, close)
                if len(pieces) == 3:
                    unit = self.tokens.word(self.at + 1).lower()
                    self.at = close + 1
                    arguments = tuple(self.inner(*piece) for piece in pieces[1:])
                    return Call(f"{function} {unit}", arguments, (start, self.at))
            return Call(function, self.arguments(), (start, self.at))
        except _UnknownFormError:
            self.at = close + 1
            return self.opaque(start, self.at)

    def arguments(self) -> tuple[Expression, ...]:
        """The expressions of a parenthesised list at the cursor, which moves past it."""
        if self.symbol() != "(":
            raise _UnknownFormError
        close = self.tokens.partner[self.at]
        if self.tokens.word(self.at + 1) in ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "DISTINCT", "ALL"):
            raise _UnknownFormError
        found = tuple(self.inner(*piece) for piece in self.tokens.split(self.at + 1, close))
        self.at = close + 1
        return found

    def cast(self, function: str, start: int, close: int) -> Expression:
        """CAST(operand AS type), from the bracket at the cursor to `close`."""
        words = [at for at in self.tokens.level(self.at + 1, close) if self.tokens.word(at) == "AS"]
        if not words:
            raise _UnknownFormError
        operand = self.inner(self.at + 1, words[-1])
        self.at = close + 1
        return Call(function, (operand,), (start, self.at))

    def case(self) -> Expression:
        start = self.at
        if self.deeply and self.depth < _NESTED:
            self.depth += 1
            try:
                return self.branches()
            except _UnknownFormError:
                self.at = start
            finally:
                self.depth -= 1
        depth = 0
        for index in self.tokens.level(self.at, self.stop):
            if self.tokens.is_symbol(index - 1, "."):
                continue
            depth += {"CASE": 1, "END": -1}.get(self.tokens.word(index), 0)
            if depth == 0:
                self.at = index + 1
                return self.opaque(start, self.at)
        raise _UnknownFormError

    def branches(self) -> Expression:
        """CASE [operand] WHEN condition THEN value … [ELSE value] END."""
        start = self.at
        self.need("CASE")
        parts = [] if self.word() == "WHEN" else [self.disjunction()]
        name = "case" if parts else "case when"
        while self.take("WHEN"):
            parts.append(self.disjunction())
            self.need("THEN")
            parts.append(self.disjunction())
        if self.take("ELSE"):
            parts.append(self.disjunction())
        self.need("END")
        if len(parts) < 2:
            raise _UnknownFormError
        return Call(name, tuple(parts), (start, self.at))

    def interval(self) -> Expression:
        """INTERVAL 'x' unit [TO unit], INTERVAL 7 DAYS [3 HOURS …], or a column called interval."""
        start = self.at
        self.at += 1
        first = self.at
        while self.at < self.stop and (
            self.tokens[self.at].kind in (TokenKind.NUMBER, TokenKind.STRING)
            or (
                self.symbol() in ("-", "+")
                and self.tokens[min(self.at + 1, self.stop - 1)].kind in (TokenKind.NUMBER, TokenKind.STRING)
            )
        ):
            self.at += 2 if self.symbol() else 1
            if self.word() and self.word() not in ("AND", "OR", "IS", "NOT", "IN", "BETWEEN", "DIV"):
                self.at += 1
            if self.take("TO"):
                self.at += 1
            if self.symbol() in ("-", "+"):
                break
        if self.at == first:
            self.at = start
            return self.name_or_call()
        return self.opaque(start, self.at)

    def opaque(self, start: int, stop: int) -> Opaque:
        return Opaque(tuple(_paths(self.tokens, start, stop, self.atoms, self.alone or ())), (start, stop))

    def opens_query(self) -> bool:
        """Whether a subquery is at the cursor that does not make the expression around it opaque."""
        return self.alone is not None and self.at < self.stop and opens_query(self.tokens, self.at)


def _widened(expression: Expression, to: Range) -> Expression:
    """The same expression with its parentheses counted as part of its text."""
    match expression:
        case Name(parts=parts):
            return Name(parts, to)
        case Literal():
            return Literal(to)
        case OperationNode(operator="NOT", operands=(operand,), range=whole) if operand.range == whole:
            return OperationNode("NOT", (_widened(operand, to),), to)  # of NOT IN and its like
        case OperationNode(operator=operator, operands=operands):
            return OperationNode(operator, operands, to)
        case Call(function=function, arguments=arguments):
            return Call(function, arguments, to)
        case Opaque(names=names):
            return Opaque(names, to)
