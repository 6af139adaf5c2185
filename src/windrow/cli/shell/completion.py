"""What may come next: keywords, tables, columns, variables of windows, commands and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from windrow.cli.shell.text import declared, tables_in, without_quotes
from windrow.cli.shell.words import FUNCTIONS, KEYWORDS, OURS

__all__ = ["Candidate", "Names", "ShellCompleter", "candidates"]

_WORD = re.compile(r"[A-Za-z_]\w*$")
_FIELD = re.compile(r"([A-Za-z_]\w*)\s*\.\s*([A-Za-z_]\w*)?$")
_WANTS_TABLE = re.compile(r"\b(FROM|JOIN|INTO|TABLE|DESCRIBE|DROP\s+\w+)\s+(\w*)$", re.IGNORECASE)
_COMMAND = re.compile(r"\s*(\.\w*)$")
_FILE_COMMANDS = (".read", ".plot", ".open")


@dataclass
class Names:
    """The session's tables, and the columns of each; empty if they are not known yet."""

    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table, whatever the case of its name."""
        folded = {name.lower(): columns for name, columns in self.tables.items()}
        return folded.get(table.lower(), ())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible completion, its kind, and how many characters before the cursor it replaces."""

    text: str
    kind: str
    replaces: int


def candidates(
    before: str, whole: str, names: Names, commands: Mapping[str, tuple[str, ...]]
) -> Iterator[Candidate]:
    """The possible completions at the cursor.

    Parameters
    ----------
    before, whole
        The text before the cursor, and all of it: tables and variables may be named after the cursor.
    names
        What the session has.
    commands
        The arguments that each command with a dot takes; ``"TABLE"`` stands for any table.
    """
    if (command := _COMMAND.fullmatch(before)) is not None:
        yield from _matching(command[1], commands, "command")
        return
    if before.lstrip().startswith("."):
        yield from _arguments(before.lstrip(), names, commands)
        return
    if without_quotes(before)[-1:] != before[-1:]:
        return  # within quotes or a comment
    found = _FIELD.search(before)
    if found is not None:
        yield from _fields(found[1], found[2] or "", whole, names)
        return
    if (wanted := _WANTS_TABLE.search(before)) is not None:
        yield from _matching(wanted[2], names.tables, "table")
        return
    word = _WORD.search(before)
    if word is None:
        return
    yield from _phrases(before)
    yield from _words(word[0], whole, names)


def _phrases(before: str) -> Iterator[Candidate]:
    """Phrases of which the first words stand there."""
    tails = [
        found for found in (re.search(rf"(?:\w+\s+){{{more}}}\w+$", before) for more in (3, 2, 1)) if found
    ]
    for tail in tails:
        typed = " ".join(tail[0].split()).lower()
        for phrase in (*OURS, *KEYWORDS):
            if phrase.lower().startswith(typed) and phrase.lower() != typed:
                yield Candidate(phrase.lower() if tail[0].islower() else phrase, "keyword", len(tail[0]))


def _arguments(before: str, names: Names, commands: Mapping[str, tuple[str, ...]]) -> Iterator[Candidate]:
    command, _, rest = before.partition(" ")
    known = commands.get(command, ())
    options = names.tables if known == ("TABLE",) else known
    last = rest.rsplit(" ", 1)[-1]
    yield from _matching(last, options, "table" if known == ("TABLE",) else "option")


def _fields(qualifier: str, prefix: str, whole: str, names: Names) -> Iterator[Candidate]:
    """The columns after a table's alias or a row variable."""
    tables = tables_in(whole)
    known = {alias.lower(): table for alias, table in tables.items()}
    if qualifier.lower() in known:
        columns: Iterable[str] = names.columns(known[qualifier.lower()])
    elif qualifier.lower() in {name.lower() for name in declared(whole).rows} or _is_pattern(
        qualifier, whole
    ):
        columns = dict.fromkeys(column for table in tables.values() for column in names.columns(table))
    else:
        return
    yield from _matching(prefix, columns, "column")


def _is_pattern(name: str, whole: str) -> bool:
    pattern = re.search(r"\bPATTERN\s*\(([^;]*?)\)\s*(?:WITHIN|SUBSET|DEFINE|$)", whole, re.IGNORECASE)
    return pattern is not None and name.lower() in re.findall(r"\w+", pattern[1].lower())


def _words(prefix: str, whole: str, names: Names) -> Iterator[Candidate]:
    variables = declared(whole)
    tables = tables_in(whole)
    columns = dict.fromkeys(column for table in tables.values() for column in names.columns(table))
    yield from _matching(prefix, columns, "column")
    yield from _matching(prefix, variables.rows, "row of the window")
    yield from _matching(prefix, variables.positions, "position")
    lower = prefix.islower()
    for words, kind in ((OURS, "windrow"), (KEYWORDS, "keyword"), (FUNCTIONS, "function")):
        yield from _matching(prefix, [word.lower() if lower else word for word in words], kind)
    yield from _matching(prefix, names.tables, "table")


def _matching(prefix: str, words: Iterable[str], kind: str) -> Iterator[Candidate]:
    for word in words:
        if word.lower().startswith(prefix.lower()) and word != prefix:
            yield Candidate(word, kind, len(prefix))


class ShellCompleter(Completer):
    """Completes :func:`candidates` and paths of files at the prompt."""

    def __init__(self, names: Names, commands: Mapping[str, tuple[str, ...]]) -> None:
        self.names, self._commands = names, commands
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """The possible completions at the cursor."""
        before = document.text_before_cursor
        command = before.lstrip().partition(" ")
        if command[0] in _FILE_COMMANDS and command[1]:
            path = re.split(r"[\s=]", before)[-1]
            yield from self._paths.get_completions(Document(path), complete_event)
            return
        seen = set()
        for one in candidates(before, document.text, self.names, self._commands):
            if one.text.lower() not in seen:
                seen.add(one.text.lower())
                yield Completion(one.text, start_position=-one.replaces, display_meta=one.kind)
