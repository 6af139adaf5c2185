"""The picture of a relation, by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.errors import NotSupportedError, UsageError
from windrow.plot.reading.chart_options import Options
from windrow.relation import Changes, Relation
from windrow.relation_kinds import LiveRelation
from windrow.spark.clauses.batch import BoundWindow
from windrow.spark.logs.session_streams import Stream
from windrow.spark.relations.time_varying_relation import TimeVarying

if TYPE_CHECKING:
    from windrow.plot.theme import Picture

__all__ = ["draw"]


def draw(
    relation: Relation,
    *,
    value: str | None = None,
    key: Any = None,
    partitions: int = 3,
    rows: int = 200,
    width: int | None = None,
) -> Picture:
    """The picture of a relation: see :meth:`windrow.Relation.plot`."""
    picture = _drawn(relation, Options(value, key, partitions, rows), width)
    from windrow.plot.offline import offline  # with Altair

    return offline(picture)


def _drawn(relation: Relation, options: Options, width: int | None) -> Picture:
    made_of = relation.made_of
    if isinstance(relation, LiveRelation):
        raise NotSupportedError(
            "a live relation cannot be drawn",
            condition="UNSUPPORTED_STREAM",
            hint="start it with a folder or windrow.Memory() as its sink, and draw the emitted rows",
        )
    if made_of is None or made_of == ():
        raise UsageError(
            "there is nothing to draw: the query has no windows, patterns or streams",
            condition="NOTHING_TO_DRAW",
            hint="draw a query with WINDOW BY, MATCH_RECOGNIZE or windows of streams, or a stream",
        )
    _need_altair()
    # imported here: Altair takes most of a second, and is an extra
    if isinstance(made_of, TimeVarying):
        from windrow.plot.reading.read_validity import read_validity
        from windrow.plot.validity import draw_validity

        return draw_validity(read_validity(made_of, options), width)
    if isinstance(made_of, Changes):
        from windrow.plot.reading.read_validity import read_changes
        from windrow.plot.staircase import draw_staircase

        return draw_staircase(read_changes(made_of, options), width)
    if isinstance(made_of, Stream):
        from windrow.plot.arrival_chart import draw_arrivals
        from windrow.plot.reading.read_arrivals import read_arrivals

        return draw_arrivals(read_arrivals(made_of, options), width)
    last = made_of[-1]
    if isinstance(last, BoundWindow):
        from windrow.plot.reading.read_windows import read_windows
        from windrow.plot.window_chart import draw_windows

        return draw_windows(read_windows(last, options), width)
    from windrow.plot.match_chart import draw_matches
    from windrow.plot.reading.read_matches import read_matches

    return draw_matches(read_matches(last, options), width)


def _need_altair() -> None:
    try:
        import altair  # noqa: F401 - only whether it is there
    except ImportError:
        raise UsageError(
            "pictures need Altair, which is not installed",
            condition="MISSING_PACKAGE",
            hint='pip install "altair>=5.5,<7" "vl-convert-python>=1.7"',
        ) from None
