"""What pictures are made of is what the queries themselves say."""

from __future__ import annotations

from pathlib import Path

import pytest

import windrow
from windrow.plot.reading.chart_options import Options
from windrow.plot.reading.read_arrivals import read_arrivals
from windrow.plot.reading.read_matches import read_matches
from windrow.plot.reading.read_validity import read_changes, read_validity
from windrow.plot.reading.read_windows import read_windows
from windrow.plot.reading.sequences import in_a_line

pytestmark = pytest.mark.usefixtures("interpreted")

READINGS = """
    CREATE OR REPLACE TEMPORARY VIEW drawn AS SELECT * FROM VALUES
    ('a', 1, 3), ('a', 2, 9), ('a', 3, 1), ('a', 4, 8), ('a', 5, 7), ('b', 1, 2), ('b', 2, 8), ('c', 1, 9)
    AS t(k, day, val)"""


@pytest.fixture(scope="module")
def session(spark):
    made = windrow.Session(spark)
    made.sql(READINGS)
    made.script("""
        CREATE OR REPLACE STREAM drawn_stream (ROWTIME day INT UNIT DAYS, k STRING, val INT) FROM drawn;
        CREATE OR REPLACE TEMPORARY VIEW drawn_log AS SELECT * FROM VALUES
            (1, 'web', 10, NULL), (2, 'web', NULL, 20), (3, 'web', 15, NULL), (3, 'app', 12, 11),
            (4, 'web', 20, 25)
            AS t(arrived, source, second, upto);
        CREATE OR REPLACE STREAM drawn_clicks
            (ROWTIME second INT UNIT SECONDS, PTIME arrived INT, PRODUCER source STRING, BOUND upto INT)
            FROM drawn_log;
    """)
    yield made
    made.script("DROP STREAM drawn_stream; DROP STREAM drawn_clicks; DROP VIEW drawn; DROP VIEW drawn_log")


def scene_of(session, sql, **options):
    relation = session.sql(sql)
    return read_windows(relation.made_of[-1], Options(**options))


def spans(scene):
    return {
        sequence.title: [(span.start, span.stop, span.label, span.closes) for span in sequence.windows]
        for sequence in scene.sequences
    }


def test_windows_that_having_keeps_stand_where_the_query_finds_them(session):
    clause = """
        WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY day
            START AS s AT sp WHEN s.val < :low END AT ep NEXT AS n WHEN n.val < 5)
        HAVING COUNT(w) > 1"""
    told = session.sql(f"SELECT s.k, sp, ep FROM drawn {clause}", low=8).collect()
    scene = read_windows(
        session.sql(f"SELECT s.k, COUNT(w) AS n FROM drawn {clause}", low=8).made_of[-1], Options()
    )
    counts = {"a": 5, "b": 2}
    expected = {f"k = {key}": [] for key in ("a", "b", "c")}
    for row in sorted(told, key=lambda row: (row["k"], row["sp"])):
        end = row["ep"] or counts[row["k"]]
        expected[f"k = {row['k']}"].append((row["sp"] - 1, end - 1, None, row["ep"] is not None))
    assert spans(scene) == expected
    assert any(found for found in expected.values())
    assert [(row.x, row.value) for row in scene.sequences[0].rows] == [(1, 3), (2, 9), (3, 1), (4, 8), (5, 7)]
    assert (scene.x.title, scene.y.title, scene.more_sequences) == ("day", "val", False)


def test_a_tumbling_window_without_end_runs_to_the_next_and_labels_have_their_row(session):
    tumbling = (
        "SELECT COUNT(w) AS n FROM drawn WINDOW BY w AS "
        "(TYPE TUMBLING PARTITION BY k ORDER BY day START AS s WHEN s.val < 5)"
    )
    assert spans(scene_of(session, tumbling)) == {
        "k = a": [(0, 1, None, True), (2, 4, None, True)], "k = b": [(0, 1, None, True)], "k = c": []
    }  # fmt: skip
    labelled = (
        "SELECT l.day FROM drawn WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY day "
        "LABEL AS l AT lp WHEN l.val = 8 START UNBOUNDED END AT ep WHEN ep - lp = 1)"
    )
    scene = scene_of(session, labelled, partitions=1)
    assert (spans(scene), scene.more_sequences) == ({"k = a": [(0, 4, 3, True)]}, True)
    scene = scene_of(session, labelled, key="b")
    assert spans(scene) == {"k = b": [(0, 1, 1, False)]}


def test_a_window_from_the_first_row_and_windows_of_windows(session):
    inner = (
        "SELECT s.k, s.day, COUNT(w) AS n FROM drawn WINDOW BY w AS "
        "(TYPE SLIDING PARTITION BY k ORDER BY day START AS s END AT e WHEN e >= ?)"
    )
    clause = "WINDOW BY v AS (TYPE SLIDING ORDER BY k, day START UNBOUNDED END AS l WHEN l.n = 1)"
    relation = session.sql(f"SELECT COUNT(v) AS n FROM ({inner}) {clause}", 3)
    scene = read_windows(relation.made_of[-1], Options())
    assert [row.value for row in scene.sequences[0].rows] == [3, 2, 1, 1, 1, 2, 1, 1]
    assert spans(scene) == {"": [(0, 2, None, True)]}


def test_a_descending_order_is_drawn_by_position(session):
    sql = (
        "SELECT s.k FROM drawn WINDOW BY w AS "
        "(TYPE SLIDING ORDER BY day DESC, k START AS s AT p END AT e WHEN e - p = 1)"
    )
    scene = scene_of(session, sql, rows=3, value="day")
    assert [row.text for row in scene.sequences[0].rows] == ["5", "4", "3"]
    assert [row.x for row in scene.sequences[0].rows] == [1.0, 2.0, 3.0]
    assert (scene.sequences[0].row_count, scene.x.title, scene.order) == (
        8, "row number (day is in descending order)", None,
    )  # fmt: skip


def test_matches_have_the_rows_that_all_rows_per_match_gives(session):
    clause = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY day MEASURES {measures} {rows}
        AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+) DEFINE A AS val < :low, B AS B.val > A.val)"""
    named = "CLASSIFIER() AS c, MATCH_NUMBER() AS m"
    all_rows = clause.format(measures=named, rows="ALL ROWS PER MATCH")
    told = session.sql(f"SELECT * FROM drawn {all_rows}", low=5).collect()
    one = clause.format(measures="LAST(day) AS last", rows="")
    scene = read_matches(session.sql(f"SELECT * FROM drawn {one}", low=5).made_of[-1], Options())
    found = [
        (sequence.title[-1], match.number, row.position + 1, row.variable)
        for sequence in scene.sequences
        for match in sequence.matches
        for row in match.rows
    ]
    assert found == sorted((row["k"], row["m"], row["day"], row["c"]) for row in told)
    assert len(found) > 4
    assert scene.variables == ("A", "B")


def test_rows_that_would_lie_upon_each_other_along_the_time_are_drawn_by_position(session):
    def scene(*seconds, **options):
        rows = ", ".join(f"('{key}', {second})" for key, second in seconds)
        return scene_of(session, f"""SELECT s.k FROM VALUES {rows} AS t(k, second) WINDOW BY w AS (
            TYPE TUMBLING PARTITION BY k ORDER BY second START AS s)""", **options)  # fmt: skip

    bursts = [("a", 0), ("a", 1), ("a", 2), ("a", 900), ("b", 5000), ("b", 5001)]
    crowded = scene(*bursts)
    assert [[row.x for row in each.rows] for each in crowded.sequences] == [[1, 2, 3, 4], [1, 2]]
    assert [[row.text for row in each.rows] for each in crowded.sequences][1] == ["5000", "5001"]
    by_number = "row number (rows would overlap along second)"
    assert (crowded.x.title, crowded.order) == (by_number, "second")
    assert [[(gap.after, gap.text) for gap in each.gaps] for each in crowded.sequences] == [[(2, "898")], []]
    # by itself the second partition has an axis on which its rows are apart
    assert [row.x for row in scene(*bursts, key="b").sequences[0].rows] == [5000, 5001]
    # three quarters of the rows are apart
    assert scene(*[("a", 1000 * at) for at in range(4)], ("a", 3001)).x.title == "second"
    assert scene(*[("a", 1000 * at) for at in range(3)], ("a", 2001)).x.title == by_number


def drawn_matches(scene):
    return [
        (sequence.title[-1:], tuple((row.position + 1, row.variable) for row in match.rows), match.until)
        for sequence in scene.sequences
        for match in sequence.matches
    ]


def test_matches_of_a_duration_are_those_of_the_query_and_have_the_place_where_it_is_over(session):
    sql = """SELECT * FROM drawn MATCH_RECOGNIZE (PARTITION BY k ORDER BY day MEASURES A.day AS day
        PATTERN (A B*) DURATION 3 DEFINE A AS val > 1, B AS B.val < 9)"""
    scene = read_matches(session.sql(sql).made_of[-1], Options())
    assert drawn_matches(scene) == [
        ("a", ((2, "A"), (3, "B"), (4, "B")), 5.0), ("a", ((5, "A"),), 8.0),
        ("b", ((1, "A"), (2, "B")), 4.0), ("c", ((1, "A"),), 4.0),
    ]  # fmt: skip
    assert scene.subtitle == ("PATTERN (A B*) DURATION 3", "DEFINE A AS val > 1, B AS B.val < 9")


@pytest.mark.parametrize(
    ("key", "duration", "until"),
    [
        ("TIMESTAMP '2026-05-04 10:00:00'", "5 MINUTES", 1777889100000.0),
        ("TIMESTAMP_NTZ '2026-05-04 10:00:00'", "30", 1777888830000.0),
        ("DATE '2026-05-04'", "INTERVAL 2 DAYS", 1778025600000.0),
        ("TIMESTAMP '2026-05-04 10:00:00'", "patience MINUTES", 1777888980000.0),
    ],
)
def test_the_time_of_a_duration_is_over_at_a_place_of_the_axis(session, key, duration, until):
    sql = f"""SELECT * FROM (SELECT {key} AS at, 3 AS patience) MATCH_RECOGNIZE (
        ORDER BY at MEASURES A.at AS seen PATTERN (A) DURATION {duration} DEFINE A AS true)"""
    (found,) = drawn_matches(read_matches(session.sql(sql).made_of[-1], Options()))
    assert found[2] == until


def test_a_duration_of_a_column_is_that_of_the_first_row(session):
    sql = """SELECT * FROM drawn MATCH_RECOGNIZE (PARTITION BY k ORDER BY day MEASURES A.day AS day
        PATTERN (A B) DURATION val DEFINE A AS val = 2)"""
    found = drawn_matches(read_matches(session.sql(sql).made_of[-1], Options()))
    assert found == [("b", ((1, "A"), (2, "B")), 3.0)]


def test_where_keys_fall_a_duration_has_no_place_on_the_axis_of_positions(session):
    sql = """SELECT * FROM drawn MATCH_RECOGNIZE (PARTITION BY k ORDER BY day DESC MEASURES A.day AS day
        PATTERN (A) DURATION 1 DEFINE A AS val = 1)"""
    assert drawn_matches(read_matches(session.sql(sql).made_of[-1], Options())) == [("a", ((3, "A"),), None)]


def test_what_a_clause_says_stands_in_one_line_and_an_end_that_is_cut_off_shows():
    assert in_a_line("a\n   = b") == "a = b"
    assert in_a_line("x" * 110) == "x" * 110
    assert in_a_line("x" * 111) == "x" * 109 + "…"


def test_all_matches_are_drawn_also_of_rows_that_have_the_names_of_what_is_read(session):
    sql = """SELECT * FROM (SELECT day AS number, val AS variable, k AS until FROM drawn) MATCH_RECOGNIZE (
        PARTITION BY until ORDER BY number MEASURES B.number AS number ALL MATCHES
        PATTERN (A X* B) DEFINE A AS variable < 8, B AS B.variable > 7)"""
    found = [
        (key, "".join(variable for _, variable in rows), rows[0][0])
        for key, rows, _ in drawn_matches(read_matches(session.sql(sql).made_of[-1], Options()))
    ]
    assert found == [("a", "AB", 1), ("a", "AXXB", 1), ("a", "AB", 3), ("b", "AB", 1)]


def test_rows_of_a_relation_that_varies_have_the_instants_of_its_changelog(session):
    relation = session.sql("SELECT k, MAX(val) AS top FROM drawn_stream [RANGE 2 DAYS] GROUP BY k")
    changes = relation.changelog("diff")
    told = {(row["k"], row["top"], row["_diff"], row["_at"]) for row in changes.collect()}
    scene = read_validity(relation.made_of, Options())
    found = {(one.key, int(one.amount), 1, one.enter) for one in scene.intervals}
    found |= {(one.key, int(one.amount), -1, one.leave) for one in scene.intervals if one.leave is not None}
    assert found == told
    assert read_changes(changes.made_of, Options(key="top")).intervals[0].key in {"2", "3", "9"}


def test_arrivals_are_judged_as_the_stream_judges_them(session):
    scene = read_arrivals(session.table("drawn_clicks").made_of, Options())
    late = [(entry.producer, entry.rowtime) for entry in scene.arrivals if entry.is_late]
    assert late == [
        tuple(row) for row in session.sql("SELECT _producer, _rowtime FROM drawn_clicks_late").collect()
    ]
    assert late == [("web", 15)]
    assert [entry.bound for entry in scene.arrivals if entry.bound is not None] == [20, 11, 25]


@pytest.mark.parametrize("file", ["x.png", Path("x.png")])
def test_a_file_that_is_given_to_plot_is_refused_with_what_writes_it(session, file):
    relation = session.sql("SELECT k, MAX(val) AS top FROM drawn_stream [RANGE 2 DAYS] GROUP BY k")
    with pytest.raises(windrow.WindrowError, match="INVALID_ARGUMENT") as refused:
        relation.plot(file)
    assert "windrow.plot.save(relation.plot(), 'x.png')" in refused.value.hint
    with pytest.raises(windrow.WindrowError, match="INVALID_ARGUMENT"):
        relation.plot(3)


def test_what_has_no_picture_and_what_cannot_be_drawn_is_refused_with_a_hint(session):
    def condition(relation, **options):
        with pytest.raises(windrow.WindrowError) as refused:
            relation.plot(**options)
        assert refused.value.hint
        return refused.value.condition

    windows = session.sql(
        "SELECT s.k FROM drawn WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY day START AS s END)"
    )
    assert condition(session.sql("SELECT 1")) == "NOTHING_TO_DRAW"
    assert condition(session.table("drawn_stream")) == "NOTHING_TO_DRAW"
    assert condition(windows, value="vall") == "UNRESOLVED_COLUMN"
    lists = session.sql(
        "SELECT s.k FROM (SELECT k, day, array(val) AS vals FROM drawn) WINDOW BY w AS "
        "(TYPE SLIDING PARTITION BY k ORDER BY day START AS s END)"
    )
    assert condition(lists, value="vals") == "INVALID_ARGUMENT"
    assert condition(windows, key=("a", 1)) == "INVALID_ARGUMENT"
    assert condition(windows, rows=0) == "INVALID_ARGUMENT"
    assert condition(session.sql("SELECT k FROM drawn_stream [ROWS 1]"), key="kk") == "UNRESOLVED_COLUMN"


RARE = """
    SELECT s.k FROM (
        SELECT id % 20 AS k, id DIV 20 AS at, IF(id % 20 IN (7, 11) AND id DIV 20 = 400, 1, 9) AS val
        FROM RANGE(10000)) WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY at
            START AS s WHEN s.val < {below} END AS e NEXT AS n WHEN n.val > 5)"""


def test_partitions_with_windows_are_drawn_around_the_first_of_these(session):
    scene = scene_of(session, RARE.format(below=5), rows=80)
    assert spans(scene) == {"k = 7": [(10, 10, None, True)], "k = 11": [(10, 10, None, True)]}
    drawn = scene.sequences[0]
    assert (drawn.skipped, len(drawn.rows), drawn.row_count, drawn.found_count) == (390, 80, 500, 1)
    assert scene.more_sequences
    scene = scene_of(session, RARE.format(below=5), rows=200)
    assert (scene.sequences[0].skipped, spans(scene)["k = 7"]) == (300, [(100, 100, None, True)])


def test_without_windows_the_first_partitions_are_drawn_from_their_first_rows(session):
    scene = scene_of(session, RARE.format(below=0), rows=5, partitions=2)
    assert [(each.title, each.skipped, each.found_count) for each in scene.sequences] == [
        ("k = 0", 0, 0), ("k = 1", 0, 0),
    ]  # fmt: skip


def test_matches_are_drawn_around_the_first_of_them(session):
    sql = """SELECT * FROM (SELECT id, IF(id = 900, 1, 9) AS val FROM RANGE(1000)) MATCH_RECOGNIZE
        (ORDER BY id MEASURES A.id AS id PATTERN (A B) DEFINE A AS val < 5, B AS val > 5)"""
    (drawn,) = read_matches(session.sql(sql).made_of[-1], Options(rows=40)).sequences
    (match,) = drawn.matches
    assert (drawn.skipped, [drawn.rows[row.position].text for row in match.rows]) == (895, ["900", "901"])


def test_a_column_that_is_read_with_its_relation_is_drawn(session):
    query = """SELECT s.a.val FROM drawn AS a JOIN drawn AS b ON a.k = b.k AND a.day = b.day WINDOW BY w AS (
        TYPE SLIDING PARTITION BY a.k ORDER BY a.day START AS s WHEN s.b.val < 3 END) HAVING s.a.day > 1"""
    scene = scene_of(session, query)
    assert (scene.x.title, scene.y.title) == ("day", "val")
    assert scene.subtitle == ("START WHEN s.b.val < 3",)
    assert spans(scene) == {"k = a": [(2, 2, None, True)], "k = b": [], "k = c": []}


STATES = """
    SELECT s.id FROM (SELECT id, {state} AS state, id % 5 AS val FROM RANGE(40)) WINDOW BY w AS (
        TYPE TUMBLING ORDER BY id START AS s WHEN s.state <> 'b')"""


def test_texts_that_a_condition_reads_are_drawn_on_levels_before_other_numbers(session):
    query = STATES.format(state="CASE id % 4 WHEN 0 THEN 'b' WHEN 1 THEN 'a' WHEN 2 THEN 'c' END")
    scene = scene_of(session, query)
    assert (scene.y.title, scene.y.levels) == ("state", ("b", "a", "c"))
    assert [row.value for row in scene.sequences[0].rows][:4] == [0, 1, 2, None]
    assert scene_of(session, query, value="val").y.title == "val"
    assert scene.subtitle == ("START WHEN s.state <> 'b'",)


def test_texts_of_too_many_kinds_are_dots_and_the_picture_says_so(session):
    scene = scene_of(session, STATES.format(state="CAST(id AS STRING)"))
    assert (scene.y, {row.value for row in scene.sequences[0].rows}) == (None, {None})
    assert "state has too many texts" in scene.subtitle[-1]
    assert "value=…" in scene.subtitle[-1]
