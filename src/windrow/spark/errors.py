"""Spark's errors, in terms of the user's text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

from pyspark import SparkContext
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from windrow.algebra.aggregate_calls import aggregate_over_windows
from windrow.algebra.names import POSITIONAL, as_written, visible_field
from windrow.algebra.predicates import out_of_scope
from windrow.algebra.scopes import is_of_subquery
from windrow.algebra.window_node import Window
from windrow.errors import (
    MARK,
    AnalysisError,
    ExecutionError,
    InputError,
    ParseError,
    Span,
    UsageError,
    WindrowError,
    did_you_mean,
    no_column,
)
from windrow.spark.jvm.bridge import JavaError, messages
from windrow.syntax.mistakes import (
    aliases_before,
    behind_match,
    call_within,
    is_name_of_from,
    meant_clause,
    meant_file,
    meant_function,
    meant_modifier,
    meant_neighbour,
    meant_one_row_each,
    meant_syntax,
    meant_unit,
    misspelt_word,
    named_like_variable,
    variable_before_clause,
)
from windrow.syntax.nodes import Role, Side
from windrow.syntax.sqltext import Piece, SqlText
from windrow.syntax.tokens import tokenize

__all__ = [
    "MEND_RECORD",
    "TWICE_IN_FROM",
    "disk_full",
    "in_window_terms",
    "local_path",
    "malformed_record",
    "of_java",
    "raising",
    "translate",
]

# Spark's own text advises a mode that the caller cannot set
MEND_RECORD = "correct the record, or read the file with spark.read and register the DataFrame"
"""The hint for a record that is malformed or cut short."""

_TO_SINKS = (
    "call relation.start(sink, checkpoint=…) for a query over streams, or relation.write for other rows"
)
_PRINTED = 60
_TRACES = ("_stackTrace", "_stacktrace")  # where exceptions of classic and of Connect sessions have causes
_STATE = re.compile(r"\s*SQLSTATE: (\w{5}).*$", re.DOTALL)
# what Spark adds to its messages that our hint says, or that nobody reads
_NUMBERED = re.compile(r"(?<=\w)#\d+L?\b")  # Spark's numbers of columns
_ADVICE = re.compile(
    r"(\s*Did you mean one of the following\?.*| Verify the spelling and correctness.*)$", re.DOTALL
)
_TIMES = {"TIMESTAMP", "TIMESTAMP_NTZ", "DATE"}
_NUMBERS = {"TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"}
# what Spark says of an aggregate over all windows in SELECT, in HAVING (its WHERE), in ORDER BY
_BESIDE_VALUES = ("MISSING_GROUP_BY", "MISSING_AGGREGATION")
_OVER_WINDOWS = (*_BESIDE_VALUES, "INVALID_WHERE_CONDITION", "UNSUPPORTED_EXPR_FOR_OPERATOR")
_OTHER_TYPES = "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"
_NO_STREAMING_VIEW = "_LEGACY_ERROR_TEMP_1008"  # of STREAM t, which Spark has too
_NO_ANSWER = "Python worker failed to connect back"
_BUSY = (
    "Python did not start within the ten seconds that Spark waits: run it again, a live query"
    " with its checkpoint; reduce the load of the machine"
)
_CONDITION = re.compile(r"^(?:\{LINE:(?P<line>\d+)\} )?\[(?P<condition>[\w.]+)\]\s*")
"""How messages begin; those of scripts with a line."""


def translate(
    error: PySparkException,
    text: SqlText | None = None,
    names: Mapping[str, str] | None = None,
    texts: Iterable[tuple[SqlText, Mapping[str, str]]] = (),
) -> WindrowError:
    """Convert an error of Spark to an error of Windrow, located in the user's text rather than in generated
    SQL.

    `text` is what Spark was reading when it failed. An error while rows are computed may be in any of
    `texts`: it is in the one that has Spark's fragment at Spark's offsets.
    """
    # what Spark says of a text it cannot analyse may quote an error that a column would raise
    parts = (error, *(getattr(error, name, "") for name in _TRACES))
    if (full := _full(" ".join(map(str, parts)))) is not None:
        return full
    from_worker = None if isinstance(error, AnalysisException | ParseException) else _from_worker(str(error))
    if from_worker is not None:
        return from_worker
    condition = error.getCondition() or "SPARK_ERROR"
    if "writeStream.start" in str(error):
        return UsageError(
            "the query reads a live stream as if it were a table, but a stream never ends",
            condition="LIVE_RELATION",
            hint="write SELECT STREAM … for its rows, FROM s [RANGE 10 MINUTES] for a time-varying"
            " relation, or EMIT STREAM at the end for every change, and start it with"
            " relation.start(sink); query.late has the late rows",
        )
    kind: type[WindrowError] = ExecutionError
    if isinstance(error, ParseException):
        kind = ParseError
    elif isinstance(error, AnalysisException):
        kind = AnalysisError
    if condition == _NO_STREAMING_VIEW and text is not None:
        return _not_streaming(error, text, dict(names or {}))
    located = _locate(error, text, dict(names or {})) if text is not None else _locate_among(error, texts)
    source, span = located if located is not None else (None, None)
    message, hint = _message(error), _hint(error)
    message = message if text is None else _without_generated(message, text)
    if source is not None and span is not None:
        if kind is ParseError and (meant := meant_clause(source)) is not None:
            return meant
        if condition == "UNBOUND_SQL_PARAMETER":
            message, hint = _unbound(source[span.start : span.stop])
        elif condition.startswith("UNRESOLVED_COLUMN"):
            guesses = (variable_before_clause, _meant_stream, meant_modifier)
            hint = next((found for guess in guesses if (found := guess(source, span)) is not None), hint)
            if hint is None or hint.startswith(_ONE_OF):
                hint = behind_match(source) or hint
        elif condition == "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE":
            called = re.match(r'window function "(\w+)', message)
            span = call_within(source, span, called[1]) if called else span
            hint = hint or meant_neighbour(source, span)
        elif condition == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
            # Spark's place is that of the whole query
            read = re.search(r'Filter expression "(.+?)" of type', message)
            at = source.lower().rfind(read[1].lower()) if read else -1
            span = Span(at, at + len(read[1])) if read and at >= 0 else span
        elif condition in ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
            hint = hint or meant_file(source[span.start : span.stop])
        elif condition == "WRITE_STREAM_NOT_ALLOWED":
            hint = _TO_SINKS
        elif condition == "INVALID_TYPED_LITERAL":
            hint = hint or meant_unit(source, span)
        elif kind is ParseError:
            hint = hint or meant_syntax(source, span)
            if hint is not None and (word := misspelt_word(source, span, hint)) != span:
                span = word
                message = re.sub(r" at or near .*", f" at {source[span.start : span.stop]}", message)
            near = re.search(r" at or near '([^']*)'", message)
            if near is not None and near[1] not in source[span.start : span.stop]:
                # words of ours follow, which the user has not written
                message = re.sub(r" at or near .*", " after this", message)
        elif condition == "UNRESOLVED_ROUTINE":
            hint = hint or meant_one_row_each(source, span) or meant_function(source, span)
    if kind is ExecutionError and _NO_ANSWER in message:
        hint = hint or _BUSY
    return kind(
        message,
        condition=condition,
        sqlstate=error.getSqlState() or None,
        sql=source,
        span=span,
        hint=hint,
    )


def _without_generated(message: str, text: SqlText) -> str:
    """A message with what the user wrote in place of the names that stand for it in the text."""
    written: dict[str, set[str]] = {}
    for part in text.parts:
        if isinstance(part, Piece) and part.source and part.width and _GENERATED.fullmatch(part.text):
            place = slice(part.offset, part.offset + part.width)
            written.setdefault(part.text.replace("`", ""), set()).add(part.source[place])
    known = {name: found.pop() for name, found in written.items() if len(found) == 1}

    def replaced(found: re.Match[str]) -> str:
        path = found[0].replace("`", "").split(".")
        for stop in range(len(path), 0, -1):
            if (name := known.get(".".join(path[:stop]))) is not None:
                return ".".join([name, *path[stop:]])
        return found[0]

    return _GENERATED.sub(replaced, message) if known else message


_GENERATED = re.compile(r"(?<![\w.`])`?__\w+`?(?:\.`?\w+`?)*")


def _meant_stream(sql: str, span: Span) -> str | None:
    """The hint for SELECT STREAM if Spark reads STREAM as a column."""
    before = sql[: span.start].upper().replace("(", " ").split()
    if sql[span.start : span.stop].upper() != "STREAM" or before[-1:] != ["SELECT"]:
        return None
    return "name a stream in FROM: SELECT STREAM does not read tables or Spark's views"


def _not_streaming(error: PySparkException, text: SqlText, names: dict[str, str]) -> WindrowError:
    """The error for STREAM t, which Spark supports too, if t is a table; Spark does not report its
    position.
    """
    rendered = text.render(names)
    view = str((error.getMessageParameters() or {}).get("quoted", "")).replace("`", "")
    tokens = tokenize(rendered)
    found = None
    for at in range(len(tokens) - 1):
        called = rendered[tokens[at + 1].start :].replace("`", "").lower()
        if tokens.word(at) == "STREAM" and called.startswith(view.lower()):
            last = at + 1
            while tokens.is_symbol(last + 1, "."):
                last += 2
            found = text.written(tokens[at].start, tokens[last].stop)
            break
    source, span = found if found is not None else (None, None)
    return AnalysisError(
        f"{view or 'this relation'} is not a streaming table or view",
        condition="UNSUPPORTED_STREAM",
        sql=source,
        span=span,
        hint="leave STREAM out to read the table; only tables and views over streaming DataFrames take it",
    )


def raising(
    condition: str, message: str, hint: str = "", sql: str | None = None, span: Span | None = None
) -> Column:
    """A column of any type that raises an error of Windrow when it is computed, at a position in a text."""
    details = {"message": message, "condition": condition, "sqlstate": "22000", "hint": hint or None}
    place = {"sql": sql, "span": [span.start, span.stop]} if span is not None else {"sql": None, "span": None}
    return F.raise_error(F.lit(MARK + json.dumps(details | place)))


def in_window_terms(
    error: WindrowError,
    window: Window,
    fields: Iterable[str],
    side: Side | None,
    path: Sequence[str] | None = None,
) -> WindrowError:
    """Add to an error about an unknown name in a window's clause or SELECT what it could have meant.

    `side` is the predicate's, None for the SELECT list after the clause. `path` is the unknown name if it is
    not in the text.
    """
    error.located(window.sql)
    if error.condition == TWICE_IN_FROM:
        return _of_several(error, window)
    if (ungrouped := _ungrouped(error, window)) is not None:
        return ungrouped
    if error.span is None or error.sql is None:
        return error
    fields = list(dict.fromkeys(text for field in fields if (text := visible_field(field)) is not None))
    over_windows = aggregate_over_windows(window) if error.condition in _OVER_WINDOWS else None
    if over_windows is not None or error.condition in _BESIDE_VALUES:
        error.span = over_windows or error.span
        error.message = "an aggregate over all windows cannot be combined with values of single windows"
        example = _of_each_window(error.sql[error.span.start : error.span.stop], window.name, fields)
        error.hint = f"aggregate the rows of each window {window.name}: {example}"
        return error
    if side is None and error.condition == _OTHER_TYPES:
        rows = [variable.name for variable in window.variables() if variable.role is not Role.POSITION]
        error.hint = error.hint or named_like_variable(error.sql, error.span, window.span, rows)
        read = error.sql[error.span.start : error.span.stop]
        for call in window.aggregates:
            read = read.replace(error.sql[call.span.start : call.span.stop], "")
        if error.hint is None and re.search(rf"\b{re.escape(window.name)}\b(?!\s*[.(])", read, re.IGNORECASE):
            error.hint = f"{window.name} is an array of rows: COUNT({window.name}) counts them"
        return error
    tokens = tokenize(error.sql)
    places = {tokens[at].start: at for at in range(len(tokens))}
    at, clause = places.get(error.span.start, 0), places.get(window.span.start, 0)
    if tokens[at].is_name and is_of_subquery(tokens, at, tokens.parent[clause] + 1):
        return error
    path = path or [part.strip("` ") for part in error.sql[error.span.start : error.span.stop].split(".")]
    if error.condition.startswith("UNRESOLVED_COLUMN"):
        visible = window.visible(side) if side is not None else window.variables()
        hint = None
        sides = {variable.name.lower(): variable.side for variable in window.variables()}
        if side is not None and (hint := out_of_scope(path[0], side, sides)) is not None:
            message, condition = f"variable {path[0]} is not visible in {side.name}", "VARIABLE_OUT_OF_SCOPE"
        else:
            message, condition = f"variable {path[0]} is not declared in WINDOW BY", "UNKNOWN_VARIABLE"
            known = [variable.name for variable in visible] + ([window.name] if side is None else [])
            of_from = len(path) > 1 and is_name_of_from(error.sql, window.span, path[0])
            column = path[1] if of_from else path[0]
            is_column = column.lower() in {field.lower() for field in fields}
            selected = aliases_before(error.sql, window.span) if side is None else []
            hint = None if is_column or of_from else did_you_mean(path[0], [*known, *selected])
            what = f"{column} is a column of the input rows"
            if of_from:
                what = f"{path[0]} is a relation of FROM, which is not visible after WINDOW BY"
            if is_column and side is None and _inside_call(error.sql, error.span):
                hint = f"aggregate {window.name}.{column}: {what}"
            elif is_column:
                rows = [variable.name for variable in visible if variable.role.value != "AT"]
                hint = (
                    f"write {rows[0]}.{column}: {what}"
                    if rows
                    else f"name the row, as in START AS s WHEN s.{column} …: {what}"
                )
            if hint is None:
                hint = (
                    f"use one of {', '.join(known)}"
                    if known
                    else "declare it with AS, AT, PREV AS or NEXT AS"
                )
        return AnalysisError(
            message, condition=condition, sqlstate="42703", sql=error.sql, span=error.span, hint=hint
        )
    if error.condition == "FIELD_NOT_FOUND":
        named = _FIELD.search(error.message)
        unknown = named[1] if named else path[-1]
        sql, span = error.sql, error.span
        return no_column("rows have", unknown, fields, condition="UNKNOWN_FIELD", sql=sql, span=span)
    return error


_BESIDE_GROUPS = re.compile(r'^the non-aggregating expression "(.+?)" is based on columns')
_FIELD = re.compile(r"struct field `([^`]+)`")
TWICE_IN_FROM = "AMBIGUOUS_REFERENCE_TO_FIELDS"
"""Spark's condition for a field that a struct has twice, as rows of a join may have."""


def _ungrouped(error: WindrowError, window: Window) -> AnalysisError | None:
    """The error for a value of each window beside groups of windows; None for other errors."""
    named = _BESIDE_GROUPS.search(error.message) if error.condition == "MISSING_AGGREGATION" else None
    unresolved = error.condition.startswith("UNRESOLVED_COLUMN")
    texts = {window.sql[one.span.start : one.span.stop]: one for one in window.aggregates}
    called = texts.get(named[1]) if named else None
    called = called or next((one for one in window.aggregates if unresolved and one.span == error.span), None)
    variables = [one.name for one in window.variables()]
    if called is not None:
        written = window.sql[called.span.start : called.span.stop]
        what, hint = written, f"aggregate it over the windows of a group, as MAX({written})"
    elif named is not None and named[1] in variables and error.span is None:
        called, what = None, named[1]
        hint = f"aggregate its columns over the windows of a group, as MAX({what}.x)"
    else:
        return None
    return AnalysisError(
        f"{what} is of each window, and is neither grouped nor aggregated",
        condition="MISSING_AGGREGATION",
        sqlstate="42803",
        sql=None if called is None else window.sql,
        span=None if called is None else called.span,
        hint=f"{hint}, or add it to GROUP BY",
    )


def _of_several(error: WindrowError, window: Window) -> AnalysisError:
    """The error for a column that several relations of FROM have, so that windows' rows have it twice."""
    named = re.search(r"`([^`]+)`", error.message)
    column = named[1] if named else "a column"
    return AnalysisError(
        f"several relations of FROM have a column {column}",
        condition=TWICE_IN_FROM,
        sqlstate=error.sqlstate,
        sql=window.sql,
        span=error.span if error.sql == window.sql and error.span is not None else window.span,
        hint=f"write the relation before it, such as s.a.{column} with FROM t AS a; or merge the columns:"
        f" JOIN … USING ({column})",
    )


def _of_each_window(call: str, window: str, fields: list[str]) -> str:
    """The hint that suggests an aggregate over the rows of a window in place of one over all windows.

    >>> _of_each_window("AVG(s.temp)", "w", ["station", "temp"]), _of_each_window("SUM(s.a + 1)", "w", ["a"])
    ('AVG(w.temp)', 'COUNT(w)')
    """
    read = re.fullmatch(r"(\w+)\s*\(\s*\w+\.(\w+)\s*\)", call)
    is_field = read is not None and read[2].lower() in {field.lower() for field in fields}
    return f"{read[1]}({window}.{read[2]})" if read is not None and is_field else f"COUNT({window})"


def _inside_call(sql: str, span: Span) -> bool:
    """Whether the position is in an argument of a function."""
    before = sql[: span.start].rstrip()
    return before.endswith("(") and before[:-1].rstrip()[-1:].isalnum()


def _unbound(marker: str) -> tuple[str, str]:
    """Message and hint for a parameter without a value; Spark's name for a ``?`` is no help to a user."""
    if marker == "?" or marker.lstrip(":").startswith(POSITIONAL):
        return "parameter ? has no value", "pass a value for each ?: sql(text, value)"
    name = marker.lstrip(":")
    return f"parameter {marker} has no value", f"pass a value: sql(text, {name}=…), or --param {name}=…"


def _message(error: PySparkException) -> str:
    """Spark's message without the condition before it, and without state, position and plan after it."""
    text = error.getMessage() or str(error)
    text = _CONDITION.sub("", text.strip())
    text = _STATE.sub("", text).strip()
    text = _ADVICE.sub("", text).strip()
    text = as_written(_NUMBERED.sub("", text))
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


_ONE_OF = "use one of "


def _hint(error: PySparkException) -> str | None:
    """Spark's suggestion as a hint, if it has one."""
    parameters = error.getMessageParameters() or {}
    sides = {str(parameters.get(side, "")).strip('"') for side in ("left", "right")}
    if sides & _TIMES and sides & _NUMBERS:
        return (
            "compare a time with a time, such as TIMESTAMP '2026-01-31 12:00:00', or a number with a number,"
            " such as hour(ts)"
        )
    if any("INTERVAL" in side for side in sides):
        return (
            "a difference of dates or times is an interval: compare it with INTERVAL 7 DAYS, or use datediff"
        )
    proposal = parameters.get("proposal") or parameters.get("suggestion")
    if not proposal or not isinstance(error, AnalysisException):
        return None
    named = [name.replace("`", "").strip() for name in proposal.split(",")]
    candidates = [name for name in named if not name.rsplit(".", 1)[-1].startswith("__")]  # not ours
    if not candidates:
        return None
    context = (parameters.get("objectName") or "").split(".")[-1].strip("`")
    return did_you_mean(context, candidates) or f"{_ONE_OF}{', '.join(candidates)}"


def _locate(error: PySparkException, text: SqlText, names: dict[str, str]) -> tuple[str, Span] | None:
    for context in error.getQueryContext():
        try:
            start, stop = context.startIndex(), context.stopIndex()
        except PySparkException:  # a context of the DataFrame API has no offsets
            continue
        return text.locate(start, stop + 1, names)
    if isinstance(error, ParseException):
        place = re.search(r"\(line (\d+), pos (\d+)\)", str(error)) or re.search(
            r"line (\d+), pos (\d+)", str(error)
        )
        if place:
            lines = text.render(names).splitlines(keepends=True)
            start = sum(len(line) for line in lines[: int(place[1]) - 1]) + int(place[2])
            word = re.match(r"\w+", "".join(lines)[start:])
            stop = start + (len(word[0]) if word else 1)
            return text.locate(start, stop, names) or text.locate_before(start, names)
    return None


def _locate_among(
    error: PySparkException, texts: Iterable[tuple[SqlText, Mapping[str, str]]]
) -> tuple[str, Span] | None:
    for context in error.getQueryContext():
        try:
            start, stop, fragment = context.startIndex(), context.stopIndex() + 1, context.fragment()
        except PySparkException:  # a context of the DataFrame API has no offsets
            continue
        for text, names in texts:
            if fragment and text.render(dict(names))[start:stop] == fragment:
                return text.locate(start, stop, dict(names))
    return None


def of_java(error: JavaError, sent: SqlText | None = None) -> WindrowError:
    """An error that PySpark has no exception for, without its trace; it may name a line of what was sent."""
    if (known := _full(str(error)) or malformed_record(str(error)) or _from_worker(str(error))) is not None:
        return known
    causes = []
    # what only says that a job or waiting for it has failed has the reason as its cause
    for text in messages(error):
        causes.append(text)
        if _CONDITION.match(text):
            break
    if not _CONDITION.match(causes[-1]):
        causes.append(next((one for one in causes if not one.startswith(_WAITED)), causes[0]))
    text = causes[-1]
    begin, state = _CONDITION.match(text), _STATE.search(text)
    line = None if begin is None or begin["line"] is None or sent is None else int(begin["line"])
    sql, span = (None, None) if line is None or sent is None else _line(sent, line)
    return ExecutionError(
        _STATE.sub("", _CONDITION.sub("", text)).strip(),
        condition=begin["condition"] if begin else "SPARK_ERROR",
        sqlstate=state[1] if state else None,
        sql=sql,
        span=span,
    )


def _line(sent: SqlText, number: int) -> tuple[str, Span] | tuple[None, None]:
    """What the user wrote of a line, counted from 1, of a text."""
    before = sent.render().splitlines(keepends=True)[:number]
    start, stop = len("".join(before[:-1])), len("".join(before).rstrip())
    return sent.written(start, stop) or (None, None)


_WAITED = "Exception thrown in awaitResult"


def disk_full(place: str | None = None) -> ExecutionError:
    """The error for a full disk, whose place may be known."""
    return ExecutionError(
        f"no space is left {f'for {place}' if place else 'on a disk that the query writes to'}",
        condition="DISK_FULL",
        sqlstate="53100",
        hint="free some space and start the query again",
    )


def _full(text: str) -> ExecutionError | None:
    """The error if Java reports a full disk; `text` contains its causes."""
    is_full = any(phrase in text for phrase in ("No space left on device", "Disk quota exceeded"))
    return disk_full() if is_full else None


def malformed_record(text: str) -> InputError | None:
    """The error for a file record with a wrong format; `text` is Java's message, including causes.

    >>> said = "[FAILED_READ_FILE] Encountered error while reading file file:///a.csv.  SQLSTATE: KD001"
    >>> cause = "[MALFORMED_CSV_RECORD] Malformed CSV record: c SQLSTATE: KD000"
    >>> malformed_record(f"{said} Caused by: {cause}").message
    'file /a.csv has a record that is malformed or cut short: c'
    """
    file = re.search(r"while reading file (\S.*?)\.\s+SQLSTATE", text)
    if file is None or "[MALFORMED_" not in text:
        return None
    record = re.search(r"\[MALFORMED_CSV_RECORD\] Malformed CSV record: (.*?)\s*SQLSTATE", text, re.DOTALL)
    return InputError(
        f"file {local_path(file[1])} has a record that is malformed or cut short"
        + (f": {record[1][:_PRINTED]}" if record else ""),
        condition="MALFORMED_RECORD",
        hint=MEND_RECORD,
    )


def local_path(uri: str) -> str:
    """A file URI of this machine as a path, any other URI unchanged."""
    return unquote(re.sub(r"^file:(//)?(?=/)", "", uri)) if uri.startswith("file:") else uri


def _from_worker(text: str) -> WindrowError | None:
    """The error that a kernel raised in a worker, read from the last line of the traceback."""
    at = text.rfind(MARK)
    if at < 0:
        return _other_python(text)
    data, _ = json.JSONDecoder().raw_decode(text[at + len(MARK) :])
    return ExecutionError(
        data["message"],
        condition=data["condition"],
        sqlstate=data["sqlstate"],
        hint=data["hint"],
        sql=data["sql"],
        span=Span(*data["span"]) if data["span"] else None,
    )


_LACKS = re.compile(
    r"ModuleNotFoundError: No module named '(windrow|pyarrow|pandas|numpy|numba)\b"
    r"|\[PACKAGE_NOT_INSTALLED\] (\w+)|\[(PYTHON_VERSION_MISMATCH)\]"
)


def _other_python(text: str) -> WindrowError | None:
    """The error if workers run a Python that differs from the driver's."""
    found = _LACKS.search(text)
    if found is None:
        return None
    lacks = "has another version" if found[3] else f"lacks {found[1] or found[2]}"
    context = SparkContext._active_spark_context  # None on Spark Connect, whose server knows
    theirs = f" ({context.pythonExec})" if context is not None else ""
    return ExecutionError(
        f"the Python of Spark's workers{theirs} {lacks}; this process runs {sys.executable}",
        condition="WORKER_PYTHON",
        hint="set PYSPARK_PYTHON, or spark.pyspark.python of spark-submit, before the session starts, to a"
        " Python of the same version with windrow installed on every worker",
    )
