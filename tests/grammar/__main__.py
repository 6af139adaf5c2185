"""``python -m tests.grammar``: draw the diagrams."""

from __future__ import annotations

from tests.grammar.drawing import FOLDER, drawn
from tests.grammar.notation import read_grammar

FOLDER.mkdir(parents=True, exist_ok=True)
for left in FOLDER.glob("*.svg"):
    left.unlink()
for name, picture in drawn(read_grammar()).items():
    (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")
