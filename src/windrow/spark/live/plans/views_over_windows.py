"""The windows in brackets of the views that clauses read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live.plans.live_plan import ContinuousPlan
from windrow.spark.live.plans.read_names import live_streams, live_windows
from windrow.spark.live.reading.windows_of_query import QueryWindow
from windrow.spark.logs.clause_view import Unbounded

__all__ = ["reasons_of_views", "unbounded_of_views", "windows_of_views"]


def windows_of_views(gateway: Gateway, catalog: Catalog, names: Iterable[str]) -> dict[str, str]:
    """The texts of the windows, by the names of their state."""
    return {name: window.text for name, _, window in _windows(gateway, catalog, names)}


def reasons_of_views(gateway: Gateway, catalog: Catalog, names: Iterable[str]) -> dict[str, str]:
    """Which rows these are, and until when they are retained, by the same names."""
    return {name: plan.reason(window) for name, plan, window in _windows(gateway, catalog, names)}


def unbounded_of_views(gateway: Gateway, catalog: Catalog, names: Iterable[str]) -> Sequence[Unbounded]:
    """The windows that rows, or keys, never leave."""
    return [one for _, plan in _plans(gateway, catalog, names) for one in plan.unbounded()]


def _windows(
    gateway: Gateway, catalog: Catalog, names: Iterable[str]
) -> Iterator[tuple[str, ContinuousPlan, QueryWindow]]:
    for view, plan in _plans(gateway, catalog, names):
        for window in live_windows(catalog, plan.query, plan.reader):
            if not window.item.is_bare:
                yield f"window.{view}{window.key}", plan, window


def _plans(gateway: Gateway, catalog: Catalog, names: Iterable[str]) -> Iterator[tuple[str, ContinuousPlan]]:
    for name in sorted(catalog.definitions.keys() & set(names)):
        view = catalog.definitions[name]
        streams = live_streams(catalog, view.query)
        yield name, ContinuousPlan(gateway, catalog, streams, view.reader, view.query)
