"""Reads the numbered examples out of the CQL reference: queries, stream inputs and printed outputs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Case", "Change", "Output", "read_cases", "titles"]

_TITLE = re.compile(r"^Example 4-(\d+) (?!shows)(.+[^.])$", re.MULTILINE)
_QUERY = re.compile(r'<query id="[^"]*"><!\[CDATA\[(.*?)\]\]></query>', re.DOTALL)
_CHANGE = re.compile(r"\s*(\d+):?\s+([+-])\s+(\S.*?)\s*$")
_AT = re.compile(r"at Time (\d+)\s*(ms|ns)?", re.IGNORECASE)
_SCHEMA = re.compile(r"[Ss]tream (\w+) has schema \(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_TYPES = {"integer": "INT", "float": "DOUBLE", "double": "DOUBLE", "timestamp": "TIMESTAMP", "char": "STRING"}


@dataclass(frozen=True)
class Change:
    """A printed line: when, + or −, and the values as they are written."""

    instant: int
    kind: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Output:
    """A printed relation: its example's number, its changes, and the instant of its title if it has one."""

    number: int
    changes: tuple[Change, ...]
    at: int | None


@dataclass(frozen=True)
class Case:
    """A query with its input.

    Attributes
    ----------
    number
        Of the query's example.
    query
        As it is printed.
    stream
        The name of the stream.
    log
        The lines of its input.
    columns
        The names and types of the values, if the text gives them.
    unit
        Of the instants.
    outputs
        All that is printed of it.
    """

    number: int
    query: str
    stream: str
    log: str
    columns: dict[str, str] | None
    unit: str
    outputs: tuple[Output, ...]


def titles(path: Path) -> dict[int, str]:
    """The titles of all examples by their numbers."""
    return {int(number): title.strip() for number, title in _TITLE.findall(path.read_text(encoding="utf-8"))}


def queries(path: Path) -> dict[int, str]:
    """The queries of those examples that are queries."""
    return {
        number: found[1].strip()
        for number, (_, body) in _examples(path).items()
        if (found := _QUERY.search(body)) is not None
    }


def read_cases(path: Path) -> list[Case]:
    """Every query that is followed by its input and outputs."""
    text = path.read_text(encoding="utf-8")
    schemas = {name: _columns(columns) for name, columns in _SCHEMA.findall(text)}
    cases: list[Case] = []
    for number, (title, body) in _examples(path).items():
        if (query := _QUERY.search(body)) is not None:
            name = re.search(r"\bfrom\s+(\w+)", query[1], re.IGNORECASE)
            stream = name[1] if name else ""
            cases.append(Case(number, query[1].strip(), stream, "", schemas.get(stream), "milliseconds", ()))
        elif "Stream Input" in title:
            cases[-1] = _with(cases[-1], log=_block(body))
        elif "Output" in title:
            at = _AT.search(title)
            changes = tuple(
                Change(int(found[1]), found[2], _values(found[3]))
                for line in _block(body).splitlines()
                if (found := _CHANGE.match(line))
            )
            output = Output(number, changes, int(at[1]) if at else None)
            unit = "nanoseconds" if at and at[2] == "ns" else cases[-1].unit
            cases[-1] = _with(cases[-1], outputs=(*cases[-1].outputs, output), unit=unit)
    return [case for case in cases if case.log]


def _with(case: Case, **changes: object) -> Case:
    return Case(**{**case.__dict__, **changes})  # type: ignore[arg-type]


def _examples(path: Path) -> dict[int, tuple[str, str]]:
    """Title and what follows it, by number."""
    text = path.read_text(encoding="utf-8")
    found = list(_TITLE.finditer(text))
    stops = [*(match.start() for match in found[1:]), len(text)]
    return {
        int(match[1]): (match[2], text[match.end() : stop]) for match, stop in zip(found, stops, strict=True)
    }


def _block(body: str) -> str:
    """The first paragraph that follows a title."""
    return body.strip("\n").split("\n\n", 1)[0]


def _values(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _columns(text: str) -> dict[str, str]:
    columns = {}
    for item in text.split(","):
        name, kind = item.split()
        columns[name] = _TYPES[re.sub(r"\(.*", "", kind)]
    return columns
