"""Charts as files: SVG, PNG, HTML, or the Vega-Lite that they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from windrow.errors import UsageError

__all__ = ["SUFFIXES", "chart_format", "save"]

SUFFIXES = (".svg", ".png", ".html", ".json")
"""The suffixes of files that a chart can be saved as."""

_OPTIONS: dict[str, dict[str, Any]] = {"png": {"scale_factor": 2.0}, "html": {"inline": True}}


def chart_format(path: Path) -> str:
    """The format of a file by its name.

    Raises
    ------
    UsageError
        ``UNKNOWN_FORMAT`` for another suffix.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"pictures cannot be written as {path.name}",
            condition="UNKNOWN_FORMAT",
            hint=f"name a file that ends in {', '.join(SUFFIXES)}",
        )
    return suffix[1:]


def save(chart: Any, path: str | Path, form: str | None = None) -> None:
    """Write a chart to a file; PNG has two pixels for each pixel of the screen.

    HTML is one self-contained file, which needs no network.

    Parameters
    ----------
    chart
        The result of `relation.plot()`.
    path
        The file, whose suffix is the format.
    form
        The format, if the suffix does not say it.

    Raises
    ------
    UsageError
        ``UNKNOWN_FORMAT``, ``MISSING_PACKAGE``.
    """
    path = Path(path)
    form = form or chart_format(path)
    try:
        import vl_convert  # noqa: F401 - Altair needs it for all but JSON
    except ImportError:
        raise UsageError(
            "pictures need vl-convert-python, which is not installed",
            condition="MISSING_PACKAGE",
            hint='pip install "altair>=5.5,<7" "vl-convert-python>=1.7"',
        ) from None
    options = _OPTIONS.get(form, {})
    chart.save(str(path), format=form, **options)
