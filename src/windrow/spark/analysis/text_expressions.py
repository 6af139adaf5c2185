"""Functions of texts in Spark's plans, as Arrow computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from windrow.kernels.computed import texts
from windrow.kernels.computed.computed_values import Function
from windrow.spark.analysis.plan_tree import SparkNode
from windrow.spark.analysis.typed_values import Handler, Span, Typed, Unread, known, literal_of, only, over

__all__ = ["concatenated", "element", "of_ascii", "of_text"]


def _text_of(operands: Sequence[Typed], literals: int) -> list[Any]:
    """The operands of a function of one text and literals."""
    first, *others = operands
    only(pa.types.is_string(first.kind) and len(others) == literals)
    return list(map(known, others))


def of_text(
    made: Callable[..., Function | None], kind: pa.DataType, literals: int, span: Span | None = None
) -> Handler:
    """A function of one text, made by literals; None if Spark must compute it."""

    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        function = made(*_text_of(operands, literals))
        if function is None:
            raise Unread
        return over(function, operands[:1], kind, span)

    return handler


def of_ascii(made: Callable[..., Function | None], kind: pa.DataType, literals: int) -> Handler:
    """The same, if only ASCII texts have a certain result."""
    handler = of_text(made, kind, literals)
    return lambda node, operands: replace(
        handler(node, operands), doubt="letters of other alphabets are Spark's to know"
    )


def concatenated(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    """``||`` and ``concat``."""
    only(all(pa.types.is_string(operand.kind) for operand in operands))
    return over(texts.concatenated, operands, pa.string())


def element(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    """``split_part``: an element of a list, or else a text."""
    parts, place = operands
    default = node.tree("defaultValueOutOfBound")
    if default is None:
        raise Unread
    at, other = known(place), known(literal_of(default))
    only(parts.kind == pa.list_(pa.string()) and at > 0)
    return over(partial(texts.element, at, other), [parts], pa.string())
