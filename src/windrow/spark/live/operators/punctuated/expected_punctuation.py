"""Which punctuation is expected: the columns on which streams will close keys."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from windrow.punctuations.schemes import GrowingKey
from windrow.spark.catalog import Catalog

__all__ = ["Bounded", "Columns", "bounded"]

Columns: TypeAlias = frozenset[str]


@dataclass(frozen=True)
class Bounded:
    """The columns on which rows are bounded; those in `rising` in their order, from the least value on."""

    by: frozenset[Columns]
    rising: Columns = frozenset()

    def within(self, columns: Collection[str]) -> bool:
        """Whether punctuations will name only these columns."""
        return any(one <= {*columns} for one in self.by)

    def only(self, columns: Mapping[str, str]) -> Bounded:
        """The bounds of some columns, under other names."""
        by = {frozenset(columns[name] for name in one) for one in self.by if one <= columns.keys()}
        return Bounded(frozenset(by), frozenset(columns[name] for name in self.rising & columns.keys()))


def bounded(catalog: Catalog, name: str) -> Bounded:
    """On which columns a stream is bounded: by its watermark, and by earlier punctuations."""
    stream = catalog.streams[name]
    by = set() if stream.rowtime is None else {frozenset([stream.rowtime])}
    named = catalog.named.get(name)
    if named is not None:
        by |= {frozenset(json.loads(text)) for text in named.known_punctuations}
    rising = set() if stream.rowtime is None else {stream.rowtime}
    for scheme in () if named is None else named.stream.definition.schemes:
        if isinstance(scheme, GrowingKey):
            by.add(frozenset([scheme.column, *scheme.within]))
            rising |= set() if scheme.within else {scheme.column}
        else:
            by.add(frozenset(scheme.columns))
    return Bounded(frozenset(by), frozenset(rising))
