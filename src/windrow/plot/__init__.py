"""Pictures of windows, matches, time-varying relations, and streams.

    relation ─ reading/ ─▶ scene (plain data) ─ a module a kind ─▶ Altair chart ─ saving ─▶ SVG, PNG, HTML

A scene has no more rows than a picture can show; the picture says how many it omits.
"""

from __future__ import annotations

from windrow.plot.drawing import draw
from windrow.plot.saving import SUFFIXES, chart_format, save

__all__ = ["SUFFIXES", "chart_format", "draw", "save"]
