"""Case files: what a query over small typed inputs must answer, or how it must fail.

The format is described in README.md. :func:`load` reads a file into frozen dataclasses and checks all that
can be checked without running anything; every complaint names file and line.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from pyspark.sql import types as T

from .literals import LiteralError, Row, Value, parse_row, parse_schema, parse_value

__all__ = [
    "MODES",
    "Case",
    "CaseError",
    "CaseFile",
    "Entry",
    "ExpectedError",
    "ExpectedRows",
    "Log",
    "Marker",
    "Mode",
    "Table",
    "Tolerance",
    "Twin",
    "case_files",
    "load",
    "parse",
]

Mode = Literal["reference", "batch"]

MODES: tuple[Mode, ...] = get_args(Mode)
"""Every way of executing a query that the cases are run in; the first one is the judge."""

CASES = Path(__file__).parent / "cases"

EntryKind = Literal["row", "bound", "watermark", "punctuation", "idle", "close"]


class CaseError(ValueError):
    """A case file that cannot be read, with the file and the line at fault."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.line = line


@dataclass(frozen=True)
class Table:
    """A named input that does not vary."""

    name: str
    schema: T.StructType
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Entry:
    """One entry of a log: a row, a promise about the rows to come, or a producer's silence or end."""

    kind: EntryKind
    ptime: Value
    producer: str | None
    row: Row | None = None
    bound: Value = None
    pattern: tuple[str, ...] = ()


@dataclass(frozen=True)
class Log:
    """A named input as it arrives: entries in order."""

    name: str
    schema: T.StructType
    rowtime: str
    entries: tuple[Entry, ...]

    def table(self) -> Table:
        """The rows alone, in order of arrival."""
        return Table(
            self.name, self.schema, tuple(entry.row for entry in self.entries if entry.row is not None)
        )


@dataclass(frozen=True)
class Twin:
    """The same question in plain Spark SQL, and the condition under which the answers must agree."""

    name: str
    condition: str
    sql: str


@dataclass(frozen=True)
class Tolerance:
    """How far a float may be off, relatively, and why it may."""

    relative: float
    reason: str


@dataclass(frozen=True)
class ExpectedRows:
    """The answer: columns with types, and rows, as a bag unless `ordered`."""

    schema: T.StructType
    rows: tuple[Row, ...]
    ordered: bool
    tolerance: Tolerance | None
    lines: tuple[int, int]


@dataclass(frozen=True)
class ExpectedError:
    """The refusal: its condition, the stretch of the query that it marks, parts of its message and hint."""

    condition: str
    start: int
    stop: int
    message: str | None
    hint: str | None
    lines: tuple[int, int]


@dataclass(frozen=True)
class Marker:
    """A mode that does not run this case: not yet (`notimpl`) or by its nature (`never`)."""

    kind: Literal["notimpl", "never"]
    mode: str
    reason: str


@dataclass(frozen=True)
class Case:
    """One query over its inputs, with what is expected of it."""

    path: Path
    line: int
    name: str
    query: str
    expected: ExpectedRows | ExpectedError
    tables: tuple[Table, ...] = ()
    logs: tuple[Log, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    setup: tuple[str, ...] = ()
    params: dict[str, Any] | list[Any] | None = None
    twins: tuple[Twin, ...] = ()
    markers: tuple[Marker, ...] = ()

    @property
    def id(self) -> str:
        """Theme and name, as pytest shows them."""
        return f"{self.path.stem}: {self.name}"

    def marker(self, mode: str) -> Marker | None:
        """What is said about `mode`, if anything."""
        return next((marker for marker in self.markers if marker.mode == mode), None)


@dataclass(frozen=True)
class CaseFile:
    """A theme: its title and its cases, or, for an included file, only inputs."""

    path: Path
    title: str
    cases: tuple[Case, ...]
    tables: tuple[Table, ...] = ()
    logs: tuple[Log, ...] = ()

    def case(self, name: str) -> Case:
        """The case of that name."""
        return next(case for case in self.cases if case.name == name)


def case_files() -> list[Path]:
    """Every case file, in order of name."""
    return sorted(CASES.glob("*.case"))


def load(path: Path) -> CaseFile:
    """Read one case file."""
    return parse(path.read_text(encoding="utf-8"), path)


def parse(text: str, path: Path) -> CaseFile:
    """Read the text of a case file; includes are looked up beside `path`."""
    return _Reader(path).file(list(_sections(text, path)))


@dataclass(frozen=True)
class _Section:
    """A header at the left margin and the indented lines below it."""

    line: int
    keyword: str
    argument: str
    body: tuple[str, ...]

    @property
    def text(self) -> str:
        return textwrap.dedent("\n".join(self.body))

    @property
    def lines(self) -> tuple[int, int]:
        """The lines of the body as a slice of the file's lines."""
        return self.line, self.line + len(self.body)

    def numbered(self) -> Iterator[tuple[int, str]]:
        """The body's lines that say something, with their numbers."""
        for offset, line in enumerate(self.body, start=1):
            if line.strip():
                yield self.line + offset, line.strip()


@dataclass
class _Scope:
    """What has been said so far: by the prologue for every case, or by one case."""

    tables: dict[str, Table] = field(default_factory=dict)
    logs: dict[str, Log] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def copy(self) -> _Scope:
        return _Scope(dict(self.tables), dict(self.logs), dict(self.settings))


_BODIES = {"input", "log", "setup", "query", "twin", "expect", "error"}
_LINERS = {"theme", "include", "set", "params", "notimpl", "never", "case"}
_SHARED = {"input", "log", "set", "include", "theme"}
_MARKER = re.compile(r"\((?P<mode>\w+)\)\s*:\s*(?P<reason>.*)")
_TWIN = re.compile(r"(?P<name>\w+)\s*:\s*(?P<condition>.*)")
_TOLERANCE = re.compile(r"(?P<ordered>ordered)?\s*(?:tolerance\s+(?P<relative>\S+?)\s*:\s*(?P<reason>.*))?")
_LOG = re.compile(r"(?P<name>\w+)\s+rowtime\s+(?P<rowtime>\w+)")
_ENTRY = re.compile(
    r"(?:at (?P<ptime>.+?) )?(?:from (?P<producer>\S+) )?"
    r"(?P<kind>row|bound|watermark|punctuation|idle|close)\b\s*(?P<rest>.*)"
)


def _sections(text: str, path: Path) -> Iterator[_Section]:
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        header = lines[at]
        if not header.strip() or header.startswith("#"):
            at += 1
            continue
        if header[0].isspace():
            raise CaseError(path, at + 1, "indented text that belongs to no section")
        stop = at + 1
        while stop < len(lines) and (not lines[stop].strip() or lines[stop][0].isspace()):
            stop += 1
        while stop > at + 1 and not lines[stop - 1].strip():
            stop -= 1
        keyword = re.match(r"\w+", header)
        name = keyword[0] if keyword else header.split()[0]
        if name not in _BODIES | _LINERS:
            raise CaseError(path, at + 1, f"unknown section {name!r}")
        body = tuple(lines[at + 1 : stop])
        if name in _LINERS and body:
            raise CaseError(path, at + 2, f"{name} is one line")
        yield _Section(at + 1, name, header[len(name) :].strip(), body)
        at = stop


@dataclass
class _Reader:
    """Sections into a file of cases."""

    path: Path

    def file(self, sections: list[_Section]) -> CaseFile:
        title, shared = "", _Scope()
        starts = [index for index, section in enumerate(sections) if section.keyword == "case"]
        for section in sections[: starts[0] if starts else None]:
            if section.keyword not in _SHARED:
                raise self.error(section.line, f"{section.keyword} before the first case")
            if section.keyword == "theme":
                title = section.argument
            else:
                self.share(section, shared)
        cases: list[Case] = []
        for start, stop in pairwise([*starts, len(sections)]):
            case = self.case(sections[start], sections[start + 1 : stop], shared.copy())
            if any(case.name == other.name for other in cases):
                raise self.error(case.line, f"a second case named {case.name!r}")
            cases.append(case)
        return CaseFile(
            self.path, title, tuple(cases), tuple(shared.tables.values()), tuple(shared.logs.values())
        )

    def error(self, line: int, message: str) -> CaseError:
        return CaseError(self.path, line, message)

    def share(self, section: _Section, scope: _Scope) -> None:
        """A section that may stand before the first case as well as in a case."""
        if section.keyword == "include":
            included = load(self.path.parent / section.argument)
            scope.tables.update({table.name: table for table in included.tables})
            scope.logs.update({log.name: log for log in included.logs})
        elif section.keyword == "input":
            scope.tables[section.argument] = self.table(section)
        elif section.keyword == "log":
            log = self.log(section)
            scope.logs[log.name] = log
        else:
            key, equals, value = (part.strip() for part in section.argument.partition("="))
            if not equals or not key:
                raise self.error(section.line, "expected set KEY = VALUE")
            scope.settings[key] = value

    def case(self, header: _Section, sections: list[_Section], scope: _Scope) -> Case:
        if not header.argument:
            raise self.error(header.line, "a case needs a name")
        seen: dict[str, _Section] = {}
        twins: list[Twin] = []
        markers: list[Marker] = []
        for section in sections:
            if section.keyword in ("twin", "notimpl", "never"):
                continue
            if section.keyword in seen and section.keyword not in _SHARED:
                raise self.error(section.line, f"a second {section.keyword} in one case")
            seen[section.keyword] = section
            if section.keyword == "theme":
                raise self.error(section.line, "theme after the first case")
            if section.keyword in _SHARED:
                self.share(section, scope)
        if "query" not in seen or not seen["query"].text.strip():
            raise self.error(header.line, f"case {header.argument!r} has no query")
        if ("expect" in seen) == ("error" in seen):
            raise self.error(header.line, f"case {header.argument!r} needs either expect or error")
        query = seen["query"].text
        expected = self.rows(seen["expect"]) if "expect" in seen else self.refusal(seen["error"], query)
        for section in sections:
            if section.keyword == "twin":
                twins.append(self.twin(section))
            elif section.keyword in ("notimpl", "never"):
                markers.append(self.marker(section))
        if twins and isinstance(expected, ExpectedError):
            raise self.error(header.line, "a twin of a query that is refused")
        return Case(
            path=self.path,
            line=header.line,
            name=header.argument,
            query=query,
            expected=expected,
            tables=tuple(table for table in scope.tables.values() if table.name not in scope.logs),
            logs=tuple(scope.logs.values()),
            settings=tuple(scope.settings.items()),
            setup=tuple(_statements(seen["setup"].text)) if "setup" in seen else (),
            params=self.params(seen["params"]) if "params" in seen else None,
            twins=tuple(twins),
            markers=tuple(markers),
        )

    def schema(self, section: _Section) -> tuple[T.StructType, list[tuple[int, str]]]:
        """The schema of a section's first line, and the other lines."""
        lines = list(section.numbered())
        if not lines:
            raise self.error(section.line, f"{section.keyword} needs a schema on its first line")
        number, text = lines[0]
        try:
            return parse_schema(text), lines[1:]
        except LiteralError as error:
            raise self.error(number, str(error)) from error

    def row(self, number: int, text: str, schema: T.StructType) -> Row:
        try:
            return parse_row(text, schema)
        except LiteralError as error:
            raise self.error(number, str(error)) from error

    def table(self, section: _Section) -> Table:
        if not re.fullmatch(r"\w+", section.argument):
            raise self.error(section.line, "expected input NAME")
        schema, lines = self.schema(section)
        return Table(
            section.argument, schema, tuple(self.row(number, text, schema) for number, text in lines)
        )

    def log(self, section: _Section) -> Log:
        match = _LOG.fullmatch(section.argument)
        if match is None:
            raise self.error(section.line, "expected log NAME rowtime COLUMN")
        schema, lines = self.schema(section)
        if match["rowtime"] not in schema.names:
            raise self.error(section.line, f"the rowtime {match['rowtime']} is not a column")
        rowtime = schema[match["rowtime"]].dataType
        entries = tuple(self.entry(number, text, schema, rowtime) for number, text in lines)
        return Log(match["name"], schema, match["rowtime"], entries)

    def entry(self, number: int, text: str, schema: T.StructType, rowtime: T.DataType) -> Entry:
        match = _ENTRY.fullmatch(text)
        if match is None:
            kinds = "|".join(get_args(EntryKind))
            raise self.error(number, f"expected [at PTIME] [from PRODUCER] {kinds} …")
        kind: EntryKind = match["kind"]  # type: ignore[assignment]
        rest = match["rest"].strip()
        try:
            ptime = parse_value(match["ptime"], T.TimestampType()) if match["ptime"] else None
            if kind == "row":
                return Entry(kind, ptime, match["producer"], row=parse_row(rest, schema))
            if kind in ("bound", "watermark"):
                return Entry(kind, ptime, match["producer"], bound=parse_value(rest, rowtime))
        except LiteralError as error:
            raise self.error(number, str(error)) from error
        pattern = tuple(cell.strip() for cell in rest.split("|")) if rest else ()
        if len(pattern) != (len(schema.fields) if kind == "punctuation" else 0):
            raise self.error(number, "a punctuation has one pattern per column, idle and close have none")
        return Entry(kind, ptime, match["producer"], pattern=pattern)

    def rows(self, section: _Section) -> ExpectedRows:
        match = _TOLERANCE.fullmatch(section.argument)
        if match is None:
            raise self.error(section.line, "expected expect [ordered] [tolerance RELATIVE: REASON]")
        tolerance = None
        if match["relative"] is not None:
            if not match["reason"].strip():
                raise self.error(section.line, "a tolerance needs its reason")
            tolerance = Tolerance(float(match["relative"]), match["reason"].strip())
        schema, lines = self.schema(section)
        rows = tuple(self.row(number, text, schema) for number, text in lines)
        return ExpectedRows(schema, rows, match["ordered"] is not None, tolerance, section.lines)

    def refusal(self, section: _Section, query: str) -> ExpectedError:
        parts: dict[str, str] = {}
        for number, text in section.numbered():
            key, colon, value = text.partition(":")
            if key not in ("at", "message", "hint") or not colon or not value.strip():
                raise self.error(number, "expected at:, message: or hint: with a text")
            parts[key] = value.strip()
        if not re.fullmatch(r"[A-Z][A-Z0-9_.]*", section.argument):
            raise self.error(section.line, "expected error CONDITION")
        if "at" not in parts:
            raise self.error(section.line, "an error needs at: with the fragment that the caret marks")
        try:
            start, stop = locate(parts["at"], query)
        except ValueError as error:
            raise self.error(section.line, str(error)) from error
        lines = section.lines
        return ExpectedError(section.argument, start, stop, parts.get("message"), parts.get("hint"), lines)

    def twin(self, section: _Section) -> Twin:
        match = _TWIN.fullmatch(section.argument)
        if match is None or not match["condition"].strip():
            raise self.error(section.line, "expected twin NAME: the condition under which it agrees")
        if not section.text.strip():
            raise self.error(section.line, "an empty twin")
        return Twin(match["name"], match["condition"].strip(), section.text)

    def marker(self, section: _Section) -> Marker:
        match = _MARKER.fullmatch(section.argument)
        if match is None or not match["reason"].strip():
            raise self.error(section.line, f"expected {section.keyword}(MODE): REASON, the reason not empty")
        if match["mode"] not in MODES:
            raise self.error(section.line, f"unknown mode {match['mode']}; there are {', '.join(MODES)}")
        return Marker(section.keyword, match["mode"], match["reason"].strip())  # type: ignore[arg-type]

    def params(self, section: _Section) -> dict[str, Any] | list[Any]:
        try:
            params = json.loads(section.argument)
        except json.JSONDecodeError as error:
            raise self.error(section.line, f"params is not JSON: {error}") from error
        if not isinstance(params, dict | list):
            raise self.error(section.line, "params is a JSON object, or an array for ? marks")
        return params


def locate(place: str, query: str) -> tuple[int, int]:
    """Offsets of the fragment `place`; marks « » set it off from context that makes it unique.

    >>> locate("WHEN «x»", "x START WHEN x")
    (13, 14)
    """
    before, opened, rest = place.partition("«")
    fragment, closed, after = rest.partition("»")
    context = before + fragment + after if opened else place
    if bool(opened) != bool(closed):
        raise ValueError(f"unpaired « » in {place!r}")
    count = query.count(context)
    if count != 1:
        raise ValueError(f"{context!r} occurs {count} times in the query; give it context with « »")
    start = query.index(context) + (len(before) if opened else 0)
    return start, start + (len(fragment) if opened else len(context))


def _statements(text: str) -> Iterator[str]:
    """Statements that each end in a semicolon at the end of a line."""
    for statement in re.split(r";[ \t]*(?:\n|$)", text):
        if statement.strip():
            yield statement.strip()
