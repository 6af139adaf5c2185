"""Compound statements, ``BEGIN … END``, as trees: statements in conditions, loops, blocks and handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from windrow.errors import ParseError
from windrow.syntax.cursor import Cursor
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = [
    "QUERIES", "Block", "Body", "Branching", "Declaration", "ForLoop", "Handler", "Jump", "Loop", "Part",
    "PlainStatement", "parse_compound", "stretches",
]  # fmt: skip

QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "EXECUTE")
"""The first words of statements that may return rows to a script, or to EXECUTE IMMEDIATE."""
_WRITES = ("INSERT", "MERGE", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class PlainStatement:
    """A statement that is no part of the control flow.

    Attributes
    ----------
    range
        Its tokens.
    sets
        Whether it is SET of variables, without VAR.
    is_query
        Whether the compound statement may return its rows, if it has columns.
    """

    range: Range
    sets: bool = False
    is_query: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """DECLARE of variables, of which types and values begin at a token; or of a condition, without names."""

    range: Range
    names: tuple[str, ...]
    after: int


@dataclass(frozen=True, slots=True)
class Handler:
    """DECLARE of what is done about errors.

    Attributes
    ----------
    goes_on
        Whether the block goes on after the statement that failed, or ends.
    conditions
        The names of conditions, which may be ``SQLEXCEPTION`` and ``NOT FOUND``, in capitals.
    states
        The SQLSTATEs.
    body
        What is done.
    """

    goes_on: bool
    conditions: frozenset[str]
    states: frozenset[str]
    body: Part


@dataclass(frozen=True, slots=True)
class Block:
    """BEGIN … END with its label."""

    label: str
    body: Body


@dataclass(frozen=True, slots=True)
class Branching:
    """IF or CASE: the whole of it, what it compares, and the bodies, each with its place."""

    range: Range
    operands: tuple[Range, ...]
    bodies: tuple[tuple[Range, Body], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """LOOP, WHILE, or, if the condition `ends` it, REPEAT."""

    label: str
    condition: Range | None
    ends: bool
    body: Body


@dataclass(frozen=True, slots=True)
class ForLoop:
    """FOR over the rows of a query: its columns are variables of the body, with `row` as their label."""

    label: str
    row: str
    query: Range
    body: Body


@dataclass(frozen=True, slots=True)
class Jump:
    """LEAVE or ITERATE."""

    label: str
    leaves: bool


Part: TypeAlias = PlainStatement | Declaration | Handler | Block | Branching | Loop | ForLoop | Jump
Body: TypeAlias = tuple[Part, ...]


def parse_compound(tokens: TokenList) -> Block | None:
    """The tree of a compound statement; None of other texts.

    What Spark refuses of it, as labels that are not there, is not noticed here.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.

    >>> from windrow.syntax.tokens import tokenize
    >>> parse_compound(tokenize("BEGIN SET x = 1; END"))
    Block(label='', body=(PlainStatement(range=(1, 5), sets=True, is_query=False),))
    """
    if tokens.word(0) != "BEGIN":
        return None
    parser = _Parser(tokens, 0, len(tokens))
    block = parser.part()
    assert isinstance(block, Block)
    parser.at += tokens.is_symbol(parser.at, ";")
    if parser.at < len(tokens):
        parser.fail(["the end"], "remove what follows END")
    return block


def stretches(body: Body) -> Iterator[tuple[Part, Range]]:
    """The statements, and the conditions and queries around them, each with what it is of."""
    for part in body:
        match part:
            case PlainStatement(range=found) | Declaration(range=found):
                yield part, found
            case Handler(body=inner):
                yield from stretches((inner,))
            case Branching(operands=operands, bodies=bodies):
                yield from ((part, operand) for operand in operands)
                for _, inner in bodies:
                    yield from stretches(inner)
            case Block(body=inner) | Loop(condition=None, body=inner):
                yield from stretches(inner)
            case Loop(condition=(start, stop), body=inner) | ForLoop(query=(start, stop), body=inner):
                yield part, (start, stop)
                yield from stretches(inner)


class _Parser(Cursor):
    def fail(self, expected: list[str], hint: str | None = None) -> NoReturn:
        at_end = self.at >= self.stop
        found = "the end of the text" if at_end else self.tokens[self.at].text
        raise ParseError(
            f"expected {' or '.join(expected)} in this script, found {found}",
            condition="PARSE_SYNTAX_ERROR",
            sql=self.tokens.sql,
            span=self.tokens.span(self.stop, self.stop) if at_end else self.here(),
            hint=hint or f"write {expected[0]} here",
        )

    def expect(self, *words: str) -> None:
        for word in words:
            if self.word() != word:
                self.fail([word])
            self.at += 1

    def label(self) -> str:
        """The name of a label, in small letters."""
        if not self.tokens.is_name(self.at):
            self.fail(["a label"])
        self.at += 1
        return self.tokens[self.at - 1].name.lower()

    def body(self, *ends: str) -> Body:
        """The parts before one of these words."""
        found: list[Part] = []
        while self.word() not in ends:
            if self.at >= self.stop:
                self.fail(list(ends))
            found.append(self.part())
            if not self.tokens.is_symbol(self.at, ";"):
                self.fail([";"])
            self.at += 1
        return tuple(found)

    def until(self, *words: str) -> Range:
        """An expression or query up to one of these words, at which the cursor stands then."""
        start, depth = self.at, 0
        for at in self.tokens.level(start, self.stop):
            word = "" if self.tokens.is_symbol(at - 1, ".") else self.tokens.word(at)
            if depth == 0 and word in words:
                if at == start:
                    self.fail(["a condition"])
                self.at = at
                return start, at
            if self.tokens.is_symbol(at, ";"):
                break
            depth += (word == "CASE") - (word == "END")
        else:
            at = self.stop
        self.at = at
        self.fail(list(words))

    def part(self) -> Part:
        """A statement, or a part of the control flow."""
        read: dict[str, Callable[[str], Part]] = {
            "BEGIN": self.block, "LOOP": self.loop, "WHILE": self.while_loop, "REPEAT": self.repeat,
            "FOR": self.for_loop,
        }  # fmt: skip
        label = ""
        if self.tokens.is_symbol(self.at + 1, ":") and self.tokens.word(self.at + 2) in read:
            label = self.label()
            self.at += 1
        start, word = self.at, self.word()
        if word in read:
            self.at += 1
            found = read[word](label)
            if self.tokens.is_name(self.at):  # the label again
                self.at += 1
            return found
        if word in ("IF", "CASE"):
            return self.choice()
        if word in ("LEAVE", "ITERATE"):
            self.at += 1
            return Jump(self.label(), word == "LEAVE")
        if word == "DECLARE":
            return self.declaration()
        self.at = next((at for at in self.tokens.semicolons if at >= start), self.stop)
        if self.at == start:
            self.fail(["a statement"])
        return _statement(self.tokens, (start, self.at))

    # -- blocks and loops, behind their first word -------------------------------------------------

    def block(self, label: str) -> Block:
        if self.words("NOT", "ATOMIC"):
            self.at += 2
        body = self.body("END")
        self.expect("END")
        return Block(label, body)

    def loop(self, label: str) -> Loop:
        body = self.body("END")
        self.expect("END", "LOOP")
        return Loop(label, None, False, body)

    def while_loop(self, label: str) -> Loop:
        condition = self.until("DO")
        self.expect("DO")
        body = self.body("END")
        self.expect("END", "WHILE")
        return Loop(label, condition, False, body)

    def repeat(self, label: str) -> Loop:
        body = self.body("UNTIL")
        self.expect("UNTIL")
        condition = self.until("END")
        self.expect("END", "REPEAT")
        return Loop(label, condition, True, body)

    def for_loop(self, label: str) -> ForLoop:
        row = ""
        if self.tokens.is_name(self.at) and self.tokens.word(self.at + 1) == "AS":
            row = self.label()
            self.at += 1
        query = self.until("DO")
        self.expect("DO")
        body = self.body("END")
        self.expect("END", "FOR")
        return ForLoop(label, row, query, body)

    # -- the others, at their first word -----------------------------------------------------------

    def choice(self) -> Branching:
        """IF or CASE, with the places of the bodies."""
        start, word = self.at, self.word()
        again, bodies, operands = ("ELSEIF" if word == "IF" else "WHEN"), [], []
        self.at += 1
        if word == "CASE":
            if self.word() != "WHEN":
                operands.append(self.until("WHEN"))
            self.expect("WHEN")
        while True:
            operands.append(self.until("THEN"))
            self.expect("THEN")
            bodies.append(self.placed(again, "ELSE", "END"))
            if self.word() != again:
                break
            self.at += 1
        if self.word() == "ELSE":
            self.at += 1
            bodies.append(self.placed("END"))
        self.expect("END", word)
        return Branching((start, self.at), tuple(operands), tuple(bodies))

    def placed(self, *ends: str) -> tuple[Range, Body]:
        start = self.at
        body = self.body(*ends)
        return (start, self.at), body

    def declaration(self) -> Part:
        """DECLARE of variables, of a condition or of a handler."""
        tokens, start = self.tokens, self.at
        self.at += 1
        if "CURSOR" in (tokens.word(self.at + 1), tokens.word(self.at + 2)):
            raise unsupported_statement(tokens, start, "a cursor", "write FOR row AS query DO … END FOR")
        if self.word() in ("EXIT", "CONTINUE") and tokens.word(self.at + 1) == "HANDLER":
            return self.handler()
        end = next((at for at in tokens.semicolons if at >= self.at), self.stop)
        if tokens.word(self.at + 1) == "CONDITION":
            self.at = end
            return Declaration((start, end), (), end)
        if self.words("OR", "REPLACE"):
            self.at += 2
        self.at += self.word() in ("VAR", "VARIABLE")
        names = [self.label()]
        while tokens.is_symbol(self.at, ","):
            self.at += 1
            names.append(self.label())
        after, self.at = self.at, end
        return Declaration((start, end), tuple(names), after)

    def handler(self) -> Handler:
        goes_on = self.word() == "CONTINUE"
        self.at += 2
        self.expect("FOR")
        conditions, states = set(), set()
        while True:
            if self.word() == "SQLSTATE":
                self.at += 1
                states.add(self.state())
            elif self.words("NOT", "FOUND"):
                conditions.add("NOT FOUND")
                self.at += 2
            else:
                first = self.at
                self.label()
                while self.tokens.is_symbol(self.at, "."):
                    self.at += 2
                conditions.add(self.tokens.text(first, self.at).replace("`", "").upper())
            if not self.tokens.is_symbol(self.at, ","):
                break
            self.at += 1
        return Handler(goes_on, frozenset(conditions), frozenset(states), self.part())

    def state(self) -> str:
        """A SQLSTATE, after this word."""
        self.at += self.word() == "VALUE"
        if self.at >= self.stop or self.tokens[self.at].kind is not TokenKind.STRING:
            self.fail(["a SQLSTATE, such as '22012'"])
        self.at += 1
        return self.tokens[self.at - 1].text[1:-1].upper()


def _statement(tokens: TokenList, part: Range) -> PlainStatement:
    start, stop = part
    if tokens.word(start) == "SET":
        is_plain = tokens.is_name(start + 1) and tokens.word(start + 1) not in ("VAR", "VARIABLE")
        after = start + 2
        while tokens.is_symbol(after, ".") and after + 2 < stop:
            after += 2
        sets = tokens.is_symbol(start + 1, "(") or (is_plain and tokens.is_symbol(after, "="))
        return PlainStatement(part, sets=sets)
    words = (
        {tokens.word(at) for at in tokens.level(*part)} if tokens.word(start) in ("WITH", "FROM") else set()
    )
    is_query = tokens.is_symbol(start, "(") or tokens.word(start) in QUERIES
    return PlainStatement(part, is_query=is_query and words.isdisjoint(_WRITES))
