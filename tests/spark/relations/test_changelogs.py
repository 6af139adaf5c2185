"""Changelogs of time-varying relations: envelopes, updates by key, and types."""

from __future__ import annotations

import pytest

from tests.spark.ticks import refused, rows, ticks_of
from windrow import Session
from windrow.errors import WindrowError

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture
def session(spark):
    return Session(spark)


@pytest.fixture
def ticks(session):
    return ticks_of(session)


def test_envelopes(ticks):
    relation = ticks.sql("SELECT v FROM ticks [RANGE 9] WHERE v = 3")
    assert relation.changelog().df.columns == ["v", "_change_type", "_commit_version", "_commit_timestamp"]
    assert [tuple(row) for row in relation.changelog().collect()] == [
        (3, "insert", 3, 3),
        (3, "delete", 12, 12),
    ]
    assert [tuple(row) for row in relation.changelog("op").collect()] == [("+I", 3, 3), ("-D", 12, 3)]
    assert [tuple(row) for row in relation.changelog("diff").collect()] == [(3, 1, 3), (3, -1, 12)]
    assert [tuple(row) for row in relation.changelog("cql").collect()] == [(3, "+", "3"), (12, "-", "3")]
    with pytest.raises(WindrowError, match="envelope"):
        relation.changelog("deltas")


UPDATES = "SELECT k, v FROM ticks [PARTITION BY k ROWS 1]"


def test_what_leaves_and_enters_of_one_key_is_an_update(ticks):
    relation = ticks.sql(UPDATES)
    told = [tuple(row) for row in relation.changelog(key="k").collect()]
    assert told[:4] == [
        (0, 0, "insert", 0, 0),
        (1, 1, "insert", 1, 1),
        (0, 0, "update_preimage", 2, 2),
        (0, 2, "update_postimage", 2, 2),
    ]
    assert [tuple(row) for row in relation.changelog("op", key=["K"]).collect()][-2:] == [
        ("-U", 5, 1, 3),
        ("+U", 5, 1, 5),
    ]
    assert {row[0] for row in relation.changelog("op", key=["k", "v"]).collect()} == {"+I", "-D"}
    assert {row[0] for row in relation.changelog("op").collect()} == {"+I", "-D"}


def test_updates_of_a_key_that_several_rows_have(spark, session):
    """As many are updates as leave and enter, the first of both in the order of their values."""
    spark.sql(
        "SELECT * FROM VALUES (1L, NULL, 3), (1L, NULL, 1), (1L, NULL, 2), (2L, NULL, 9), (2L, NULL, 8), "
        "(2L, 1, 0) AS t(ts, k, v)"
    ).createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM u (ROWTIME ts BIGINT, k INT, v INT) FROM o")
    told = session.sql("SELECT k, v FROM u [NOW]").changelog("op", key="k").collect()
    assert [tuple(row) for row in told if row._at == 2] == [
        ("-D", 2, None, 3),
        ("-U", 2, None, 1),
        ("+U", 2, None, 8),
        ("-U", 2, None, 2),
        ("+U", 2, None, 9),
        ("+I", 2, 1, 0),
    ]


def test_a_changelog_with_a_key_is_a_relation(ticks):
    query = f"SELECT _change_type, COUNT(*) AS n FROM CHANGELOG OF ({UPDATES}) KEY (k) AS c GROUP BY ALL"
    assert rows(ticks.sql(query)) == [("insert", 2), ("update_postimage", 4), ("update_preimage", 4)]


@pytest.mark.parametrize(
    ("query", "condition", "marked"),
    [
        (f"SELECT * FROM CHANGELOG OF ({UPDATES}) KEY (z)", "UNRESOLVED_COLUMN", "z"),
        (f"SELECT * FROM CHANGELOG OF ({UPDATES}) KEY (k + 1)", "PARSE_SYNTAX_ERROR", "k + 1"),
        (f"SELECT * FROM CHANGELOG OF ({UPDATES}) KEY ()", "PARSE_SYNTAX_ERROR", "("),
        ("SELECT * FROM CHANGELOG OF (SELECT k, k FROM ticks [NOW]) KEY (k)", "AMBIGUOUS_REFERENCE", "k"),
        (
            "SELECT * FROM CHANGELOG OF (SELECT map(k, v) AS m FROM ticks [NOW]) KEY (m)",
            "UNORDERABLE_TYPE",
            "m",
        ),
    ],
)
def test_mistakes_in_keys_of_changelogs(ticks, query, condition, marked):
    assert refused(ticks, query) == (condition, marked)


def test_only_envelopes_with_updates_have_a_key(ticks):
    for envelope in ("diff", "cql"):
        with pytest.raises(WindrowError) as caught:
            ticks.sql(UPDATES).changelog(envelope, key="k")
        assert caught.value.condition == "INVALID_ARGUMENT"


def test_the_changelog_is_a_relation(ticks):
    query = (
        "SELECT _change_type AS c, COUNT(*) AS n FROM CHANGELOG OF (SELECT v FROM ticks [RANGE 2]) GROUP BY c"
    )
    assert rows(ticks.sql(query)) == [("delete", 6), ("insert", 6)]
    assert refused(ticks, "SELECT * FROM CHANGELOG OF (SELECT 1)")[0] == "NOT_VARYING"


def test_difference_using(ticks):
    query = "ISTREAM(SELECT k, v FROM ticks [PARTITION BY k ROWS 1]) DIFFERENCE USING ({})"
    assert [tuple(row) for row in ticks.sql(query.format("k")).collect()] == [(0, 0, 0), (1, 1, 1)]
    assert len(ticks.sql(query.format("k, v")).collect()) == 6
    assert refused(ticks, query.format("z")) == ("UNRESOLVED_COLUMN", "z")


def test_types_in_changelogs(ticks):
    """Variants cannot be compared; over a column that tells the rowtime nothing has to be."""
    relation = ticks.sql("SELECT parse_json('1') AS j FROM ticks [RANGE 2]")
    for ask in (lambda: relation.changelog(), lambda: relation.changelog("diff")):
        with pytest.raises(WindrowError) as caught:
            ask()
        assert (caught.value.condition, "column j" in caught.value.message) == ("UNORDERABLE_TYPE", True)
    assert (
        len(ticks.sql("SELECT CAST(parse_json('1') AS INT) AS j FROM ticks [RANGE 2]").changelog().collect())
        > 0
    )
    with pytest.raises(WindrowError) as caught:
        ticks.sql("SELECT TIME '10:00:00' AS t, v FROM ticks [RANGE 2]").changelog()
    assert caught.value.condition == "UNSUPPORTED_TIME_TYPE"
    maps = ticks.sql("SELECT map(1, k) AS m FROM ticks [RANGE 1]").changelog("op")
    assert [tuple(row) for row in maps.collect()][:2] == [("+I", 0, {1: 0}), ("-D", 1, {1: 0})]
