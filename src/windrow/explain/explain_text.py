"""The parts of EXPLAIN's text: expressions, SQL, and sections of named lines."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.algebra.names import ROW, as_written
from windrow.algebra.physical import PlanDraft
from windrow.algebra.window_node import WindowFragment
from windrow.rules.match_draft import MatchDraft
from windrow.syntax.sqltext import RelationText as Reference
from windrow.syntax.sqltext import SqlText

__all__ = ["constants", "not_exchanged", "one_line", "order", "section", "text_of", "without_keys"]


def not_exchanged(*, in_slices: bool) -> str:
    """Why tasks exchange no rows."""
    or_slices = ", or a slice of one with the rows around it" if in_slices else ""
    return f"none: each task reads whole partitions{or_slices}"


def order(key: WindowFragment, descending: bool, nulls_first: bool, names: dict[str, str]) -> str:
    """An ORDER BY key."""
    direction = "DESC" if descending else "ASC"
    return f"{text_of(key, names)} {direction} NULLS {'FIRST' if nulls_first else 'LAST'}"


def text_of(fragment: WindowFragment, names: dict[str, str]) -> str:
    """An expression."""
    return "a Column" if fragment.column is not None else one_line(fragment.text, names)


def one_line(text: SqlText, names: dict[str, str]) -> str:
    """SQL on one line, relations under their names."""
    return " ".join(as_written(text.render(names)).replace(f"{ROW}.", "").split())


def constants(draft: PlanDraft | MatchDraft, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The lines of what is computed once: parts that read no row, and columns where there is no row."""
    of_rows = {column.text.render() for column in draft.hoisted if column.column is None}
    for name, text in draft.constants:
        where = " where there is no such row" if text.render() in of_rows else ""
        yield "constant", f"{name} = {one_line(text, names)}{where}, computed once"


def without_keys(rows: SqlText) -> SqlText:
    """The input's SQL as the user would write it: the columns that it selects are listed separately."""
    for index, part in enumerate(rows.parts):
        if not isinstance(part, Reference) and part.text.startswith("struct(*"):
            rest = rows.parts[index + 1 :]
            source = next(
                (
                    at
                    for at, piece in enumerate(rest)
                    if not isinstance(piece, Reference) and _begins(piece.text)
                ),
                None,
            )
            if source is not None:
                return SqlText((*rows.parts[:index], *(SqlText.of("* ").parts), *rest[source:]))
    return rows


def _begins(text: str) -> bool:
    return text.lstrip().upper().startswith("FROM")


def section(title: str, lines: list[tuple[str, str]]) -> str:
    """A title, and below it lines of a name and a text."""
    width = max(len(name) for name, _ in lines) + 2
    return "\n".join([title, *(f"  {name:<{width}}{text}" for name, text in lines)])
