"""The windows of WINDOW BY over the sequences that are drawn."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.algebra.names import as_written
from windrow.algebra.window_node import Uses, Window, WindowBoundary
from windrow.plot.reading.chart_options import Options
from windrow.plot.reading.sequences import ID, POSITION, Sequences, by_position, in_a_line, read_sequences
from windrow.plot.scene import DrawnSpan, SequenceScene
from windrow.spark.clauses.batch import BoundWindow, bind_window, build_window
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import Role, Side, Variable
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = ["read_windows"]

_AT = "__drawn"
_MOST = 200
"""The number of windows of a sequence that are read: more than a picture can show."""


def read_windows(bound: BoundWindow, options: Options) -> SequenceScene:
    """The windows that satisfy HAVING, with the values beneath.

    Raises
    ------
    WindrowError
        As the query does, and ``UNRESOLVED_COLUMN`` or ``INVALID_ARGUMENT`` of the options.
    """
    window, analyzer = bound.window, bound.analyzer
    gateway = Gateway(analyzer.gateway.spark, analyzer.gateway.parameters)
    gateway.frames = dict(analyzer.gateway.frames)
    conditions = [item.when.text.render() for item in window.boundaries() if item.when is not None]
    calls = [call.text.render() for call in window.aggregates]

    def firsts(frame: DataFrame) -> DataFrame:
        first = F.coalesce("start", F.lit(1)).alias(POSITION)
        return _windows(gateway, window, frame).select(F.col("id").alias(ID), first)

    sequences = read_sequences(gateway, window, analyzer.rows, [*conditions, *calls], options, firsts)
    found: dict[str, list[DrawnSpan]] = {name: [] for name in sequences.drawn}
    counts = dict.fromkeys(sequences.drawn, 0)
    for name, span, count in _found(gateway, window, sequences):
        counts[name] = count
        if span.start < len(sequences.drawn[name].rows):
            found[name].append(span)
    drawn = tuple(
        replace(sequence, windows=tuple(found[name]), found_count=counts[name])
        for name, sequence in sequences.drawn.items()
    )
    return SequenceScene(
        _title(window),
        sequences.x,
        sequences.y,
        drawn,
        more_sequences=sequences.more,
        order=sequences.order,
        subtitle=(*_subtitle(window), *sequences.notes),
    )


def _windows(gateway: Gateway, window: Window, frame: DataFrame) -> DataFrame:
    """The windows over numbered rows that satisfy HAVING, by the positions of their boundaries."""
    order, rows = by_position(window, frame)
    numbered = _with_positions(replace(window, order_by=order))
    bound = bind_window(gateway, numbered, rows)
    positions = ", ".join(
        f"{_AT}_{side.value} AS {side.value}"
        if _has(numbered, side)
        else f"CAST(NULL AS BIGINT) AS {side.value}"
        for side in Side
    )
    having = window.having if window.having is not None else SqlText.of("TRUE")
    query = SqlText.of(
        window.prefix,
        f"SELECT {_AT}.{ID} AS id, {positions}, (",
        having,
        ") AS satisfies FROM ",
        RelationText(window.key),
    )
    windows = gateway.sql(query, {window.key: build_window(gateway, bound)})
    first = "coalesce(label, start)" if window.label is not None else "start"
    # without END, a window ends before the next one
    implied = f"lead({first}) OVER (PARTITION BY id ORDER BY {first}) - 1"
    windows = windows.selectExpr(
        "*", f"{implied if window.end is None else 'CAST(NULL AS BIGINT)'} AS implied", f"{first} AS first"
    )
    return windows.where("satisfies")


def _found(gateway: Gateway, window: Window, sequences: Sequences) -> list[tuple[str, DrawnSpan, int]]:
    """Each window's sequence, its span, and how many windows the sequence has."""
    windows = _windows(gateway, window, sequences.frame).selectExpr(
        "*",
        "count(1) OVER (PARTITION BY id) AS found",
        "row_number() OVER (PARTITION BY id ORDER BY coalesce(start, 1), first) AS number",
    )
    with gateway.translated():
        found = windows.where(F.col("number") <= _MOST).orderBy("id", "number").collect()
    windows_by_id = []
    for row in found:
        drawn = sequences.drawn[row["id"]]
        span = _span(window, row["start"], row["end"], row["label"], row["implied"], drawn.row_count)
        windows_by_id.append((row["id"], _moved(span, drawn.skipped), row["found"]))
    return windows_by_id


def _moved(span: DrawnSpan, skipped: int) -> DrawnSpan:
    """The window's place among rows before which some are not drawn."""
    label = None if span.label is None else span.label - skipped
    return replace(span, start=max(span.start - skipped, 0), stop=span.stop - skipped, label=label)


def _span(
    window: Window, start: int | None, end: int | None, label: int | None, implied: int | None, count: int
) -> DrawnSpan:
    """The window over rows numbered from 0; a missing boundary is the partition's first or last row."""
    opens = start is not None or window.start.unbounded
    closes = end is not None or window.end is None or window.end.unbounded
    last = end if end is not None else implied if implied is not None else count
    return DrawnSpan(
        (start or 1) - 1,
        last - 1,
        None if window.label is None or label is None else label - 1,
        opens,
        closes,
    )


def _has(window: Window, side: Side) -> bool:
    return any(variable.name == f"{_AT}_{side.value}" for variable in window.variables())


def _with_positions(window: Window) -> Window:
    """The window with the positions of its boundaries and its first row, and what HAVING reads of it."""

    def positioned(boundary: WindowBoundary | None) -> WindowBoundary | None:
        if boundary is None or boundary.unbounded:
            return boundary
        at = Variable(f"{_AT}_{boundary.side.value}", boundary.side, Role.POSITION, boundary.span)
        return replace(boundary, variables=(*boundary.variables, at))

    label, start, end = positioned(window.label), positioned(window.start), positioned(window.end)
    assert start is not None
    row = Variable(_AT, Side.LABEL if label is not None else Side.START, Role.ROW, window.span)
    if label is not None:
        label = replace(label, variables=(*label.variables, row))
    else:
        start = replace(start, variables=(*start.variables, row))
    numbered = replace(window, label=label, start=start, end=end)
    uses = [Uses(_AT, frozenset([ID]))]
    uses += [Uses(name.name, frozenset()) for name in numbered.variables() if name.name.startswith(f"{_AT}_")]
    if window.having is None:
        return replace(numbered, uses=tuple(uses), aggregates=(), compared=())
    return replace(numbered, uses=(*window.uses, *uses))


def _subtitle(window: Window) -> tuple[str, ...]:
    """The conditions, one on each line."""
    texts = []
    for boundary in window.boundaries():
        if boundary.when is not None:
            words = as_written(boundary.when.text.render())
            texts.append(in_a_line(f"{'ONLY ' if boundary.only else ''}{boundary.side.name} WHEN {words}"))
    return tuple(texts)


def _title(window: Window) -> str:
    kind = "tumbling" if window.tumbling else "sliding"
    return f"{kind} windows {window.name}"
