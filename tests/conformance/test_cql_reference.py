"""The examples of the CQL reference, read out of its text: what it prints is what Windrow answers."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from windrow import Session

from .cql_examples import Case, Change, Output, queries, read_cases, titles

SHARED = Path(os.environ.get("WINDROW_SHARED", Path(__file__).parents[3] / "shared"))
REFERENCE = SHARED / "reference" / "cql-operators.txt"
SEMANTICS = SHARED / "design" / "semantics.md"

pytestmark = [
    pytest.mark.skipif(not REFERENCE.exists(), reason="the text of the CQL reference is not here"),
    pytest.mark.usefixtures("interpreted"),
]

CASES = read_cases(REFERENCE) if REFERENCE.exists() else []

#: How what is printed is not what its own definitions give. All that is typed by hand.
DEVIATIONS = {
    "4-2": "the query lacks commas",
    "table 4-4": "the query lacks commas",
    "4-5": "lists the rows alive at the instant, with their deletions",
    "4-11": "34,44.4 is 34,4.4",
    "4-14": "lists the rows alive at the instant, with when they entered",
    "4-15": "lists the rows alive at the instant, with when they entered",
    "4-24": "lists the rows alive at the instant, with when they entered",
    "4-25": "lists the rows alive at the instant, with when they entered; the deletion at 1006 is left out",
    "4-26": "prints deletions at the instants of insertions, by a range of time that is not the window's",
    "4-30": "the prose gives a window by rows a range of time; 4-32 is right",
    "4-35": "an equal row leaves and enters at one instant, which is no change",
    "4-39": "no data are printed",
    "4-41": "no data are printed",
    "table 4-5": "the granularity is the minute",
}
MISPRINTS = {11: (("34", "44.4"), ("34", "4.4"))}
AT_2001 = {26: [("45", "23.44"), ("30", "0.3"), ("17", "1.3")]}


def test_the_list_of_deviations_is_that_of_the_semantics():
    (listed,) = re.findall(r"These, and only these, deviate:.*?\n\n", SEMANTICS.read_text(), re.DOTALL)
    named = set(re.findall(r"[Tt]able 4-\d+|4-\d+", listed.replace("Table", "table")))
    assert named - {"4-32"} == set(DEVIATIONS)  # 4-32 is named as what is right


def test_every_example_is_a_case():
    covered = {output.number for case in CASES for output in case.outputs}
    covered |= {case.number for case in CASES} | {case.number + 1 for case in CASES}
    alone = {1, 2, 39, 40, 41}  # queries without printed input
    assert covered | alone == set(titles(REFERENCE)) == set(range(1, 42))


@pytest.fixture(params=["batch", pytest.param("reference", marks=pytest.mark.sampled)])
def session(spark, request):
    return Session(spark, execution=request.param, dialect="cql")


def declared(session: Session, case: Case, directory: Path) -> None:
    path = directory / f"{case.stream}.cql"
    path.write_text(case.log)
    session.stream(case.stream, path, unit=case.unit, columns=case.columns)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"4-{case.number}")
def test_example(session, case, tmp_path):
    declared(session, case, tmp_path)
    relation = session.sql(case.query)
    changes = answered(relation)
    for output in case.outputs:
        printed = [
            Change(change.instant, change.kind, values(MISPRINTS, output, change))
            for change in output.changes
        ]
        if output.at is None:
            assert net(changes) == net(printed), f"4-{output.number}"
        elif output.number in AT_2001:
            alive = [tuple(map(shown, row)) for row in relation.at(output.at).collect()]
            assert sorted(alive) == sorted(AT_2001[output.number]), f"4-{output.number}"
        else:
            check_alive(relation, changes, output, printed)


def check_alive(relation, changes: list[Change], output: Output, printed: list[Change]) -> None:
    """The rows printed as entering are those at the instant; every printed change is of the relation."""
    alive = Counter(tuple(map(shown, row)) for row in relation.at(output.at).collect())
    assert alive == Counter(change.values for change in printed if change.kind == "+")
    assert alive
    assert not Counter(printed) - Counter(changes), f"4-{output.number}"


def values(misprints, output: Output, change: Change) -> tuple[str, ...]:
    wrong, right = misprints.get(output.number, (None, None))
    return right if change.values == wrong else change.values


def answered(relation) -> list[Change]:
    return [
        Change(int(row["timestamp"]), row["kind"], tuple(row["tuple"].split(",")))
        for row in relation.changelog("cql").collect()
    ]


def net(changes: list[Change]) -> dict[tuple[int, tuple[str, ...]], int]:
    """The count of each row at each instant, where it is not 0."""
    total: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for change in changes:
        total[change.instant, comparable(change.values)] += 1 if change.kind == "+" else -1
    return {key: count for key, count in total.items() if count}


def comparable(row: tuple[str, ...]) -> tuple[str, ...]:
    """The values, timestamps in one spelling."""
    return tuple(re.sub(r"^(\d\d)/(\d\d)/(\d{4}) ([\d:]+)$", r"\3-\1-\2 \4", value.strip()) for value in row)


def shown(value: object) -> str:
    return "" if value is None else str(value)


@pytest.fixture
def s10(session, tmp_path):
    path = tmp_path / "S10.cql"
    path.write_text("1000 1,ab\n2000 2,\n3000 3,c\n")
    session.stream("S10", path, columns={"c1": "INT", "c2": "STRING"})
    return session


def test_concatenation_of_4_1(s10):
    """Of a string and NULL it is the string; a window of the stream gives what the stream gives."""
    query = queries(REFERENCE)[1]
    for windowed in (query, f"{query} [RANGE UNBOUNDED]"):
        relation = s10.sql(windowed)
        assert relation.df.columns == ['c2 || "xyz"']
        assert sorted(row[0] for row in relation.collect()) == ["abxyz", "cxyz", "xyz"]


def test_operators_of_tables_4_1_to_4_3(s10, spark):
    text = REFERENCE.read_text()
    found = dict(re.findall(r"Table (4-[23]) .*?CDATA\[(.*?)\]\]>", text, re.DOTALL))
    assert [tuple(row) for row in s10.sql(found["4-3"]).collect()] == [(5,)]
    spark.sql("SELECT * FROM VALUES (-1), (1) AS t(quantity)").createOrReplaceTempView("orderitemsstream")
    assert [tuple(row) for row in s10.sql(found["4-2"]).collect()] == [(-1,)]
    (example,) = re.findall(r"adds the result to 1\.\n\n(\S+)", text)
    assert s10.sql(f"SELECT {example} AS r, -{example} || 1 - 1 AS s").collect() == [(7, 50)]


def test_alternation_of_4_2(session, tmp_path):
    """Its commas put in, and the order that patterns need as yet also over a stream."""
    path = tmp_path / "S.cql"
    path.write_text("1 10,1\n2 10,2\n3 20,3\n4 20,4\n5 30,5\n6 10,6\n7 30,7\n8 10,8\n9 40,9\n")
    session.stream("S", path, rowtime="ts", unit="seconds", columns={"c1": "INT", "c2": "INT"})
    query = queries(REFERENCE)[2]
    for given, wanted in (
        ("as p2", "as p2,"),
        ("B.c1 = 20", "B.c1 = 20,"),
        ("(\n    MEASURES", "(\n ORDER BY ts MEASURES"),
    ):
        assert query.count(given) == 1
        query = query.replace(given, wanted)
    assert sorted(map(tuple, session.sql(query).collect())) == [(2, 4, 4), (6, None, None)]


def test_dstream_of_table_4_5(session, tmp_path):
    """The relation grows and empties, and its deletions are the stream ten minutes later."""
    text = REFERENCE.read_text()
    (table,) = re.findall(r"TradeInputs:\n\nTime\s+Value\n(.*?)\n\n", text, re.DOTALL)
    (printed,) = re.findall(r"Table 4-5 DStream Example Output\n(.*?)Note that", text, re.DOTALL)
    path = tmp_path / "S.cql"
    path.write_text(table)
    session.stream("S", path, unit="minutes")
    rows = session.sql(queries(REFERENCE)[40]).collect()
    delayed = [(int(at), value) for at, value in re.findall(r"^\+(\d+)\s+(\S+)\s*$", printed, re.MULTILINE)]
    assert [(row.rowtime, f"{row.c1},{row.c2}") for row in rows] == delayed
    assert len(delayed) == 3
    relation = session.sql("SELECT * FROM S [RANGE 10 MINUTES]")
    inserted = re.findall(r"^\+\s(\d+)\s+(\S+)\s*$", printed, re.MULTILINE)
    deleted = re.findall(r"^-\s(\d+)\s+(\S+)\s*$", printed, re.MULTILINE)
    wanted = [Change(int(at), "+", tuple(value.split(","))) for at, value in inserted]
    wanted += [Change(int(at), "-", tuple(value.split(","))) for at, value in deleted]
    assert net(answered(relation)) == net(wanted)


def test_istream_of_4_39(session, spark):
    """The query is understood; of data of ours it gives what its prose says."""
    spark.sql(
        "SELECT * FROM VALUES (1L, 7, 'a', 10.0D), (5L, 8, 'b', 20.0D) "
        "AS t(ts, TxnId, ACCT_INTRL_ID, TRXN_BASE_AM)"
    ).createOrReplaceTempView("transactions")
    session.sql(
        "CREATE OR REPLACE STREAM viewq3 (TxnId INT, ACCT_INTRL_ID STRING, TRXN_BASE_AM DOUBLE, "
        "ROWTIME ts BIGINT UNIT SECONDS) FROM transactions"
    )
    spark.sql(
        "SELECT * FROM VALUES ('b', 'DE', 3) AS t(ACCT_INTRL_ID, ADDR_CNTRY_CD, TRXN_LOC_ADDR_SEQ_ID)"
    ).createOrReplaceTempView("ValidLoopCashForeignTxn")
    rows = session.sql(queries(REFERENCE)[39]).collect()
    assert [tuple(row) for row in rows] == [(5, 8, "b", 20.0, "DE", 3)]


def test_rstream_of_4_41(session, spark):
    """The query is understood; of data of ours it gives what its prose says."""
    spark.sql(
        "SELECT * FROM VALUES (1L, 1, 0, 0, 0, 5), (2L, 2, 0, 0, 0, 6), (2L, 3, 0, 0, 0, 5) "
        "AS t(ts, car_id, exp_way, lane, dir, seg)"
    ).createOrReplaceTempView("cars")
    session.sql(
        "CREATE OR REPLACE STREAM CarSegEntryStr (car_id INT, exp_way INT, lane INT, dir INT, seg INT, "
        "ROWTIME ts BIGINT UNIT SECONDS) FROM cars"
    )
    spark.sql(
        "SELECT * FROM VALUES (0, 0, 0, 5, 2.5D) AS t(exp_way, lane, dir, seg, toll)"
    ).createOrReplaceTempView("SegToll")
    rows = session.sql(queries(REFERENCE)[41]).collect()
    assert [tuple(row) for row in rows] == [(1, 1, 2.5), (2, 3, 2.5)]
