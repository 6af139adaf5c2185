"""Types that are known without a question to Spark's analyser are the ones that it gives."""

from __future__ import annotations

import pytest

from windrow.algebra.bind import bind
from windrow.rules.hoist_predicates import _row_variable
from windrow.rules.known_types import known_types
from windrow.spark.analysis import analyzer as analysis
from windrow.spark.analysis.analyzer import SparkAnalyzer
from windrow.spark.gateway import Gateway
from windrow.syntax.expression_nodes import parts_of
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import tokenize

TYPES = (
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)", "string", "boolean", "date",
    "timestamp", "timestamp_ntz", "binary", "interval day to second", "interval month", "array<int>",
)  # fmt: skip
FIELDS = ", ".join(f"CAST(NULL AS {kind}) AS f{number}" for number, kind in enumerate(TYPES))
KNOWN = (
    "e.f2 < 25", "e.f0 - s.f1 >= 3", "ep - sp = 19", "e.f3 + e.f0 > s.f2", "e.f5 - e.f2 < e.f4",
    "e.f9 - s.f9 > INTERVAL '7' DAY", "e.f9 - s.f9 <= INTERVAL 7 DAYS", "e.f9 > s.f9 AND NOT e.f8",
    "e.f13 >= INTERVAL 3 HOURS OR e.f7 IS NULL", "e.f2 BETWEEN 1 AND s.f3", "e.f1 IN (1, 2)", "e.f10 = s.f10",
    "e.f5 <=> s.f4", "e.f11 IS NOT NULL", "e.f0 - s.f0 = 0",
    "true", "FALSE OR e.f2 > 3", "datediff(e.f9, s.f9) > 6", "date_diff(e.f9, s.f9) + 1 > ep",
)  # fmt: skip
ASKED = ("e.f6 > 2", "lower(e.f7) = 'x'", "e.f7 > s.f7", "E.f2 < 25", "e.F2 < 25", "e.f2 < 2.5",
         "e.f2 / 2 > 1", "e.f9 > s.f10", "e.f2 < 99999999999", "e.f2 * 2 < 9", "datediff(e.f10, s.f9) > 1",
         "datediff(DAY, e.f9, s.f9) > 1")  # fmt: skip


def analyzer_of(spark, condition, aggregates="COUNT(*)"):
    text = f"""SELECT {aggregates} FROM (SELECT {FIELDS})
        WINDOW BY w AS (TYPE SLIDING ORDER BY f9 START AS s AT sp END AS e AT ep WHEN {condition})"""
    tokens = tokenize(text)
    (window,) = bind(tokens, (0, len(tokens))).windows
    gateway = Gateway(spark)
    return window, SparkAnalyzer(gateway, window, gateway.sql(window.rows))


def known(window, analyzer):
    boundary = window.end
    scope = {one.name.lower(): _row_variable(one, boundary) for one in window.visible(boundary.side)}
    return known_types(boundary.when, scope, analyzer.fields, intervals=analyzer.has_intervals)


@pytest.mark.parametrize("condition", KNOWN)
def test_of_conditions(spark, condition):
    window, analyzer = analyzer_of(spark, condition)
    when = window.end.when
    texts = [SqlText.of("(", when.part(part.range), ")") for part in parts_of(when.expression)]
    assert known(window, analyzer) == analyzer.types(texts, window.end.side)


@pytest.mark.parametrize("condition", ASKED)
def test_of_other_conditions_spark_is_asked(spark, condition):
    assert known(*analyzer_of(spark, condition)) is None


def test_legacy_intervals_are_asked_for(spark, conf):
    conf("spark.sql.legacy.interval.enabled", "true")
    assert known(*analyzer_of(spark, "e.f9 - s.f9 > INTERVAL '7' DAY")) is None
    assert known(*analyzer_of(spark, "ep - sp = 3")) is not None


def test_of_aggregates(spark, monkeypatch):
    fields = range(len(TYPES))
    calls = [f"{name}(w.f{number})" for name in ("COUNT", "MIN", "MAX") for number in fields]
    calls += [f"{name}(w.f{number})" for name in ("SUM", "AVG") for number in range(7)]
    calls += ["COUNT(*)", "COUNT(DISTINCT w.f2)", "SUM(DISTINCT w.f2)", "MEDIAN(w.f2)"]
    window, analyzer = analyzer_of(spark, "ep = 3", ", ".join(calls))
    found = [analyzer.aggregate(call) for call in window.aggregates]
    monkeypatch.setattr(analysis, "known_aggregate", lambda *_: None)
    _, asked = analyzer_of(spark, "ep = 3", ", ".join(calls))
    assert found == [asked.aggregate(call) for call in window.aggregates]


def test_true_and_false_cost_no_job(spark, monkeypatch):
    _, analyzer = analyzer_of(spark, "true")
    monkeypatch.setattr(analyzer.gateway, "sql", None)
    texts = {"c0": SqlText.of("(true)"), "c1": SqlText.of("(", "FALSE", ")")}
    assert analyzer.constants(texts).to_pylist() == [{"c0": True, "c1": False}]
    with pytest.raises(TypeError):
        analyzer.constants({**texts, "c2": SqlText.of("(1)")})
