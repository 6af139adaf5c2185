"""Literals: every type reads back what it renders, and bad text says why."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as T

from .literals import (
    LiteralError,
    normalise,
    parse_row,
    parse_schema,
    parse_value,
    render_rows,
    render_schema,
    render_value,
    to_spark,
)

WIDE = "123456789012345678901234567890123456.78"

VALUES: list[tuple[str, str, Any]] = [
    ("boolean", "true", True),
    ("tinyint", "-1", -1),
    ("bigint", "9223372036854775807", 2**63 - 1),
    ("double", "2.5", 2.5),
    ("double", "-Infinity", float("-inf")),
    ("double", "1e+18", 1e18),
    ("decimal(38, 2)", WIDE, Decimal(WIDE)),
    ("decimal(10, 3)", "0.000", Decimal("0E-3")),
    ("string", "two words", "two words"),
    ("string", '"NULL"', "NULL"),
    ("string", '""', ""),
    ("string", '" a|b, \\"c\\""', ' a|b, "c"'),
    ("binary", "0x00ff", b"\x00\xff"),
    ("date", "2020-02-29", date(2020, 2, 29)),
    ("timestamp", "2020-01-01 10:00:00.000001", datetime(2020, 1, 1, 10, 0, 0, 1, UTC)),
    ("timestamp_ntz", "2020-01-01 10:00:00", datetime(2020, 1, 1, 10)),
    ("array<int>", "[1, NULL, 3]", (1, None, 3)),
    ("array<int>", "[]", ()),
    ("struct<a: int, b: struct<c: string>>", "(1, (x))", (1, ("x",))),
    ("map<string, int>", "{a: 1, b: NULL}", (("a", 1), ("b", None))),
    ("map<timestamp_ntz, int>", '{"2020-01-01 10:00:00": 1}', ((datetime(2020, 1, 1, 10), 1),)),
    ("int", "NULL", None),
]


@pytest.mark.parametrize(("ddl", "text", "value"), VALUES)
def test_a_literal_reads_and_renders(ddl: str, text: str, value: Any) -> None:
    data_type = parse_schema(f"x {ddl}").fields[0].dataType
    assert parse_row(text, parse_schema(f"x {ddl}")) == (value,)
    assert render_value(value, data_type) == text
    assert normalise(to_spark(value, data_type), data_type) == value


@pytest.mark.parametrize(
    "ddl",
    [
        "a int, b decimal(38, 18)",
        "`a b` string",
        "w array<struct<s: string, m: map<string, array<date>>>>",
    ],
)
def test_a_schema_renders_as_it_reads(ddl: str) -> None:
    assert render_schema(parse_schema(ddl)) == ddl


def test_timestamps_from_spark_are_compared_as_instants() -> None:
    local = datetime(2020, 1, 1, 10, tzinfo=UTC).astimezone().replace(tzinfo=None)
    assert normalise(local, T.TimestampType()) == parse_value("2020-01-01 10:00:00", T.TimestampType())


def test_rows_are_aligned_numbers_to_the_right() -> None:
    schema = parse_schema("s string, n int")
    assert render_rows([("a", 1), ("long", 100), (None, None)], schema) == [
        "a    |    1",
        "long |  100",
        "NULL | NULL",
    ]


@pytest.mark.parametrize(
    ("ddl", "text", "message"),
    [
        ("a int", "x", "'x' is not a int"),
        ("a boolean", "yes", "'yes' is not a boolean"),
        ("a binary", "ff", "'ff' is not a binary"),
        ("a date", "2020-13-01", "'2020-13-01' is not a date"),
        ("a decimal(3, 1)", "1.x", "is not a decimal"),
        ("a int, b int", "1", "expected '|', found 'the end'"),
        ("a int", "1 | 2", "more cells than the 1 columns"),
        ("a string, b int", " | 1", "an empty cell"),
        ("a array<int>", "[1 2]", "'1 2' is not a int"),
        ("a array<int>", "[1", "expected ',', found 'the end'"),
        ("a struct<x: int>", "1", "expected '(', found '1'"),
    ],
)
def test_a_bad_row_says_why(ddl: str, text: str, message: str) -> None:
    with pytest.raises(LiteralError) as caught:
        parse_row(text, parse_schema(ddl))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("a", "expected a name, found the end"),
        ("a integr", "unknown type integr"),
        ("a int b int", "unexpected b"),
        ("a array<int", "expected >, found the end"),
        ("a int; b int", "unexpected ';'"),
    ],
)
def test_a_bad_schema_says_why(ddl: str, message: str) -> None:
    with pytest.raises(LiteralError) as caught:
        parse_schema(ddl)
    assert message in str(caught.value)
