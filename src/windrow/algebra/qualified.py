"""Columns of a row that are read with a qualifier, the relation of FROM: ``s.r.k``, ``s.r.*``.

The row contains such a column again, as a separate field (:func:`windrow.algebra.names.of_relation`), so
Spark resolves ``r.k`` as in FROM; for ``r.*`` the field is a struct with all columns. A second variable, over
all fields, replaces the first where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from windrow.algebra.names import QUALIFIED, of_relation
from windrow.syntax.cql_clauses import alias_after, begins_relation, window_at
from windrow.syntax.expression_nodes import Name
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["QualifiedFields", "find_qualified", "is_same", "is_star", "relations_of", "written"]


@dataclass(frozen=True)
class QualifiedFields:
    """The positions of ``s.r.k`` in a SELECT.

    Attributes
    ----------
    atoms
        The names that stand there, the variable and the field, by their first tokens.
    columns
        Where ``r.k`` is written first, by the field.
    keys
        Where ``r.k`` stands in PARTITION BY and ORDER BY, and the field.
    """

    atoms: Mapping[int, Name]
    columns: Mapping[str, Range]
    keys: Mapping[Range, str]

    def with_atoms(self, atoms: Mapping[int, Name]) -> QualifiedFields:
        """The same with other names for fields of rows."""
        return replace(self, atoms={**self.atoms, **atoms})

    def in_keys(self, part: Range) -> dict[Range, str]:
        """The fields in a key."""
        return {at: word for at, word in self.keys.items() if part[0] <= at[0] and at[1] <= part[1]}

    def fields(self) -> dict[Range, str]:
        """The fields of the variables, by position."""
        return {name.range: ".".join(map(quoted, name.parts)) for name in self.atoms.values()}

    def replaced(self) -> dict[Range, str]:
        """The SQL for Spark, by position."""
        return {
            name.range: ".".join((quoted(QUALIFIED + name.parts[0]), quoted(name.parts[1])))
            + ".*" * is_star(name)
            for name in self.atoms.values()
        }

    def named(self) -> list[Range]:
        """The positions of columns, whose names stay in SELECT; a star has those of its columns."""
        return [name.range for name in self.atoms.values() if not is_star(name)]

    def items(self, text: Callable[[int, int], SqlText]) -> list[SqlText]:
        """The fields of the rows with the columns."""
        found = []
        for field, at in self.columns.items():
            column = text(*at)
            if field.endswith(_STAR):
                column = SqlText.of("struct(", column, ")")
            found.append(SqlText.of(column, " AS ", quoted(field)))
        return found


_STAR = ".*"


def is_star(name: Name) -> bool:
    """Whether all columns of a relation are read."""
    return name.parts[1].endswith(_STAR)


def find_qualified(tokens: TokenList, query: BlockText, *, with_keys: bool = False) -> QualifiedFields:
    """The columns that a SELECT with WINDOW BY reads with a qualifier where their relations are gone.

    They are in PARTITION BY and ORDER BY of a SELECT over groups, or `with_keys`. The rows of a nested query
    (:mod:`windrow.algebra.rewriting.patterns.patterns_before_windows`) have the fields already.
    """
    clause = query.clause
    relations = set(relations_of(tokens, query.source))
    rows = {item.name.lower(): item.name for item in clause.variables()} | {clause.name.lower(): clause.name}
    variables = {item.name.lower() for item in clause.variables()}
    items = {start for start, stop in tokens.split(*query.select) if stop == start + 5}
    read = [query.select, query.having, query.groups_after, query.tail]
    read += [one.when for one in (clause.label, clause.start, clause.end) if one is not None]
    atoms: dict[int, Name] = {}
    columns: dict[str, Range] = {}
    for start, stop in (part for part in read if part is not None):
        for at in range(start, stop - 2):
            if _is_field(tokens, at) and tokens[at].name.lower() in rows:
                atoms[at] = Name((rows[tokens[at].name.lower()], tokens[at + 2].name), (at, at + 3))
                continue
            path = (at, at + 2, at + 4)
            is_path = at + 4 < stop and tokens.is_symbol(at + 1, ".") and tokens.is_symbol(at + 3, ".")
            star = at in items and tokens[at].name.lower() in variables and tokens.is_symbol(at + 4, "*")
            if not is_path or not all(tokens[part].is_name for part in path[: 2 if star else 3]):
                continue
            if tokens.is_symbol(at - 1, ".") or tokens.is_symbol(at - 1, ":"):
                continue
            variable, relation = (tokens[part].name.lower() for part in path[:2])
            column = "*" if star else tokens[at + 4].name.lower()
            if variable in rows and relation in relations:
                field = of_relation(relation, column)
                atoms[at] = Name((rows[variable], field), (at, at + 5))
                columns.setdefault(field, (at + 2, at + 5))
    keys: dict[Range, str] = {}
    listed = (*clause.partition_by, *(item.expression for item in clause.order_by))
    for start, stop in listed if with_keys or query.group_by is not None else ():
        for at in range(start, stop - 2):
            is_path = tokens[at].is_name and tokens.is_symbol(at + 1, ".") and tokens[at + 2].is_name
            relation = tokens[at].name.lower()
            if is_path and relation in relations and not tokens.is_symbol(at - 1, "."):
                name = of_relation(relation, tokens[at + 2].name.lower())
                keys[at, at + 3] = quoted(name)
                columns.setdefault(name, (at, at + 3))
    return QualifiedFields(atoms, columns, keys)


def _is_field(tokens: TokenList, at: int) -> bool:
    """Whether a field of a variable for a qualified column is here."""
    is_path = tokens[at].is_name and tokens.is_symbol(at + 1, ".") and tokens[at + 2].is_name
    return is_path and tokens[at + 2].name.startswith(QUALIFIED)


def relations_of(tokens: TokenList, source: Range) -> Iterable[str]:
    """The names, in lower case, of the relations in FROM."""
    level = [at for at in range(*source) if _is_in_from(tokens, at, source)]
    for at in level:
        if tokens.word(at) == "VIEW" and tokens.word(at - 1) == "LATERAL":
            yield from _generated(tokens, at + 1, source[1])
        elif begins_relation(tokens, at):
            yield from _named(tokens, at, source[1])


def _is_in_from(tokens: TokenList, at: int, source: Range) -> bool:
    """Whether a token is in FROM itself, or in brackets around relations there."""
    parent = tokens.parent[at]
    while parent >= source[0]:
        first = tokens.word(parent + 1)
        if first in ("SELECT", "WITH", "FROM", "VALUES", "TABLE") or not begins_relation(tokens, parent):
            return False
        parent = tokens.parent[parent]
    return True


def _named(tokens: TokenList, at: int, stop: int) -> Iterable[str]:
    """The name of the relation that begins at a token: its alias, or else the last part of its name."""
    while tokens.word(at) in ("LATERAL", "STREAM") and not tokens.is_symbol(at + 1, "."):
        at += 1
    last = None
    if tokens.word(at) == "VALUES":
        at += 1
        while tokens.is_symbol(tokens.partner.get(at, at) + 1, ","):
            at = tokens.partner.get(at, at) + 2
    elif at < stop and tokens[at].is_name:
        while at + 2 < stop and tokens.is_symbol(at + 1, ".") and tokens[at + 2].is_name:
            at += 2
        last = at
    at = tokens.partner.get(at, at) + 1
    if at < stop and tokens.is_symbol(at, "(") and last is not None:  # a function
        at = tokens.partner[at] + 1
    if at < stop and window_at(tokens, at):
        at = tokens.partner[at] + 1
    alias = alias_after(tokens, at, stop)
    if alias is not None:
        yield tokens[alias].name.lower()
    elif last is not None:
        yield tokens[last].name.lower()


def _generated(tokens: TokenList, at: int, stop: int) -> Iterable[str]:
    """The name of a LATERAL VIEW."""
    at += tokens.word(at) == "OUTER"
    while at < stop and not tokens.is_symbol(at, "("):
        at += 1
    name = tokens.partner[at] + 1 if at < stop else stop
    if name < stop and tokens[name].is_name:
        yield tokens[name].name.lower()


def written(tokens: TokenList, key: Range, relations: set[str]) -> tuple[str, ...]:
    """The normal form of a key: the parts of a name, or the words of an expression.

    Names may be qualified by one of these `relations`, or not.
    """
    expression = parse_expression(tokens, *key)
    if not isinstance(expression, Name):
        return tokens.folded(*key)
    parts = tuple(part.lower() for part in expression.parts)
    return ("", *(parts[1:] if len(parts) > 1 and parts[0] in relations else parts))


def is_same(tokens: TokenList, one: Range, other: Range, relations: set[str]) -> bool:
    """Whether two expressions of a query are the same: a column may have its relation in one of them.

    Without it, a column that several relations have is an error.
    """
    if one[1] - one[0] == other[1] - other[0]:
        return tokens.folded(*one) == tokens.folded(*other)
    return written(tokens, one, relations) == written(tokens, other, relations)
