"""The names that windows and clauses had in checkpoints up to version 6: by the number of their token.

Now the number is :func:`~windrow.syntax.canonical_text.canonical_place`, which does not change with words
that a text may leave out. Both have the same order, so a name of one is found for a name of the other.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

__all__ = ["link", "renamed"]

_PLACE = re.compile(r"(__input|__(?:windows|matches)\d+_)(\d+)")
_SUFFIXES = re.compile(r"(\.waiting)?(\.gone)?$")


def renamed(stored: Iterable[str], names: Collection[str]) -> dict[str, str] | None:
    """The names of now for those in a checkpoint; None if the query has others.

    >>> renamed(["window__input9.gone", "window__input12"], ["window__input7", "window__input8"])
    {'window__input9.gone': 'window__input7.gone', 'window__input12': 'window__input8'}
    """
    stored = list(stored)
    old, new = _by_text({_stem(name) for name in stored}), _by_text({_stem(name) for name in names})
    found: dict[str, str] = {}
    for text, own in old.items():
        if len(own) != len(new.get(text, ())):
            return None
        found |= dict(zip(own, new[text], strict=True))
    return {name: found[_stem(name)] + name.removeprefix(_stem(name)) for name in stored}


def link(old: Path, new: Path) -> None:
    """Add a second name to a file, or a folder of files; one of these may be there already."""
    if old.is_dir():
        shutil.copytree(old, new, copy_function=_link_file, dirs_exist_ok=True)
    elif old.exists():
        _link_file(old, new)


def _link_file(old: str | Path, new: str | Path) -> None:
    """Add a second name to a file in place of what has it."""
    if Path(old) != Path(new):
        Path(new).unlink(missing_ok=True)
        os.link(old, new)


def _stem(name: str) -> str:
    return _SUFFIXES.sub("", name)


def _by_text(stems: Collection[str]) -> dict[str, list[str]]:
    """Names by what they are without numbers, in the order of these."""
    found: dict[str, list[str]] = {}
    for name in sorted(stems, key=lambda name: [int(number) for _, number in _PLACE.findall(name)]):
        found.setdefault(_PLACE.sub(r"\1", name), []).append(name)
    return found
