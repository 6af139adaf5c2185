# ruff: noqa: E501 - a statement is a line
"""What was refused when each engine had a reader of its own, a statement for each refusal.

They are those of the page of limits at commit 98d2bd6d, in five of its sections. The statements run over
the streams and tables of :mod:`tests.spark.relations.test_former_refusals`: `s` and `t` are live, also `d`
with dates and `i`, `j` with numbers for rowtimes; `log`, `log2` are recorded with processing times, `rec`,
`rec2` without; `r`, `u`, `parts` are tables.

Not here, as they are of folders, sinks and servers: checkpoints in object stores and those that a Connect
server does not share, `mode="table"` into tables of Spark, and types that Parquet changes are refused as
before; several `UNION ALL` in brackets on Spark Connect are answered, as `test_connect.py` shows.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FORMER", "Former"]


@dataclass(frozen=True)
class Former:
    """A statement that was refused.

    Parameters
    ----------
    section
        The section of the page.
    name
        The refusal.
    statements
        What shows it; the last one was refused.
    refused
        The condition of the error today, if it still is.
    by
        Why it still is: `nature` (the standard, or no system can), `Spark` (as in all of its SQL), or `""`.
    """

    section: str
    name: str
    statements: tuple[str, ...]
    refused: str | None = None
    by: str = ""


W = "WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts START AS t END AS e WHEN e.v < t.v)"
UNKEYED = W.replace("PARTITION BY k ", "")
FRAME = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING PATTERN (a b*) DEFINE b AS b.v > PREV(b.v)"
PAIR = FRAME.replace("UNBOUNDED", "2")
FRAMED = f"WINDOW w AS (PARTITION BY k ORDER BY ts {FRAME})"
MINUTE = "[RANGE 1 MINUTE]"
BEST = f"(SELECT k, MAX(v) AS m FROM s {MINUTE} GROUP BY k)"
COUNTS = "CREATE OR REPLACE TEMPORARY VIEW counted AS SELECT k, COUNT(*) AS n FROM log GROUP BY k EMIT STREAM"
NEAR = "b.k = a.k AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts"
FINAL = "EMIT STREAM AFTER WATERMARK"
VERSIONS = "log2 FOR SYSTEM_TIME AS OF a.ts AS b"
A_LOG = "(ROWTIME ts TIMESTAMP, k STRING, v INT, PTIME at INT)"


def matches(
    measure: str = "COUNT(*) AS n",
    define: str = "b.v > PREV(b.v)",
    order: str = "ORDER BY ts",
    pattern: str = "(a b+)",
) -> str:
    return (
        f"MATCH_RECOGNIZE (PARTITION BY k {order} MEASURES {measure} PATTERN {pattern} DEFINE b AS {define})"
    )


LIVE = {
    "GROUP BY over CHANGELOG OF": f"SELECT k, COUNT(*) AS n FROM CHANGELOG OF {BEST} GROUP BY k",
    "DISTINCT over CHANGELOG OF": f"SELECT DISTINCT k FROM CHANGELOG OF {BEST}",
    "ORDER BY over CHANGELOG OF": f"SELECT k, m FROM CHANGELOG OF {BEST} ORDER BY m LIMIT 2",
    "a join of two CHANGELOG OF": f"SELECT a.k FROM CHANGELOG OF {BEST} AS a JOIN CHANGELOG OF "
    f"(SELECT k, MAX(v) AS m FROM t {MINUTE} GROUP BY k) AS b ON a.k = b.k",
    "CHANGELOG OF beside windows": f"SELECT a.k, b.v FROM CHANGELOG OF {BEST} AS a JOIN t {MINUTE} AS b ON a.k = b.k",
    "CHANGELOG OF as a view": f"CREATE OR REPLACE TEMPORARY VIEW changes AS SELECT k, m, _op FROM CHANGELOG OF {BEST}",
    "CHANGELOG OF in several units": f"SELECT k FROM CHANGELOG OF (SELECT k FROM i [RANGE 1 SECOND]) "
    f"UNION ALL SELECT k FROM CHANGELOG OF (SELECT k FROM s {MINUTE})",
    **{
        f"WINDOW BY over {name}": f"SELECT t.ts, t.k, COUNT(w) AS n FROM ({rows}) {W}"
        for name, rows in {
            "groups": "SELECT k, ts, SUM(v) AS v FROM s GROUP BY k, ts",
            "OVER": "SELECT ts, k, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS v FROM s",
            "DISTINCT": "SELECT DISTINCT ts, k, v FROM s",
            "ORDER BY and LIMIT": "SELECT ts, k, v FROM s ORDER BY ts LIMIT 5",
            "a join": "SELECT s.ts, s.k, t.v FROM s JOIN t ON s.k = t.k",
            "UNION": "SELECT ts, k, v FROM s UNION SELECT ts, k, v FROM t",
            "UNION ALL with a table": "SELECT ts, k, v FROM s UNION ALL SELECT ts, k, v FROM r",
        }.items()
    },
    "another order than the rowtime's": "SELECT t.k FROM s " + UNKEYED.replace("ORDER BY ts", "ORDER BY v"),
    "SELECT STREAM that leaves the rowtime out": f"SELECT * FROM (SELECT STREAM k, v FROM s {MINUTE}) "
    + matches(order=""),
    "windows by another time than their label row's": f"SELECT COUNT(*) AS n FROM (SELECT e.ts, t.k FROM s {W}) "
    "[RANGE 1 HOUR]",
    "WINDOW BY over a table beside live windows": f"SELECT a.n, b.n AS m FROM (SELECT t.k, COUNT(w) AS n FROM r {W}) AS a "
    f"JOIN (SELECT t.ts, t.k, COUNT(w) AS n FROM s {W}) {MINUTE} AS b ON a.k = b.k",
    "clauses over rowtimes in several units": f"SELECT a.n FROM (SELECT t.ts, t.k, COUNT(w) AS n FROM i {W}) {MINUTE} AS a "
    f"JOIN (SELECT t.ts, t.k, COUNT(w) AS n FROM j {W}) {MINUTE} AS b ON a.k = b.k",
    "DEFINE of texts of several rows": "SELECT * FROM s " + matches(define="b.k || PREV(b.k) = 'aa'"),
    "DEFINE of decimals of several rows": "SELECT * FROM s "
    + matches(define="CAST(b.v AS DECIMAL(5, 1)) * PREV(CAST(b.v AS DECIMAL(5, 1))) > 2"),
    "DEFINE by a function that the kernel lacks": "SELECT * FROM s "
    + matches(define="reverse(concat(b.k, PREV(b.k))) = 'aa'"),
    "keys with a collation": "SELECT * FROM (SELECT ts, k COLLATE UTF8_LCASE AS k, v FROM s) " + matches(),
    "CREATE TABLE AS of live windows": f"START CREATE TABLE IF NOT EXISTS former_windows AS SELECT t.ts, t.k FROM s {W}",
    "INSERT without STREAM of live windows": f"START INSERT INTO u SELECT t.k, COUNT(w) FROM s {W}",
    "rank over windows with patterns": f"SELECT STREAM k, ts, rank() OVER w FROM s {FRAMED.replace(FRAME, PAIR)}",
    "lag over windows with patterns": f"SELECT STREAM k, ts, lag(v) OVER w FROM s {FRAMED.replace(FRAME, PAIR)}",
    "processing times in a column": f"CREATE STREAM former_times {A_LOG} FROM STREAM former_log",
    "rowtimes of several types": f"SELECT s.k FROM s {MINUTE} JOIN i {MINUTE} ON s.k = i.k",
    "TIMESTAMP beside DATE": f"SELECT s.k FROM s {MINUTE} JOIN d [RANGE 1 DAY] ON s.k = d.k",
    "a table with partitions as a sink": "START INSERT INTO parts SELECT STREAM v, k FROM s",
    "a relation in INSERT INTO": f"INSERT INTO u SELECT k, COUNT(*) FROM s {MINUTE} GROUP BY k",
    "SELECT STREAM inside a query": f"SELECT k, COUNT(*) AS n FROM (SELECT STREAM k, v FROM s) {MINUTE} GROUP BY k",
    "SELECT STREAM in a WITH list": "WITH x AS (SELECT STREAM ts, k, v FROM s) "
    f"SELECT k, COUNT(*) AS n FROM x {MINUTE} GROUP BY k",
}

STREAMS = {
    "a correlated subquery for one value": "SELECT k, (SELECT MAX(v) FROM rec2 [RANGE 5 SECONDS] AS b WHERE b.k = a.k) AS m "
    "FROM rec [RANGE 5 SECONDS] AS a",
    "a subquery for one value in HAVING": "SELECT k FROM rec [RANGE 5 SECONDS] GROUP BY k "
    "HAVING COUNT(*) > (SELECT AVG(v) FROM rec [RANGE 3 SECONDS])",
    "OVER beside groups": "SELECT k, RANK() OVER (ORDER BY COUNT(*)) AS p FROM rec [RANGE 5 SECONDS] GROUP BY k",
    "CREATE TABLE AS of what varies": "CREATE TABLE former_counts AS "
    "SELECT k, COUNT(*) AS n FROM rec [RANGE 5 SECONDS] GROUP BY k",
    "INSERT of what varies": "INSERT INTO u SELECT k, COUNT(*) AS n FROM rec [RANGE 5 SECONDS] GROUP BY k",
    "WINDOW BY over windows in brackets": f"SELECT t.k, COUNT(w) AS n FROM rec [RANGE 5 SECONDS] {W}",
    "WINDOW BY in one block with them": f"SELECT t.k, COUNT(w) AS n FROM r, (SELECT k AS k2 FROM rec [ROWS 1]) AS b {W}",
    "ISTREAM of variants": "ISTREAM(SELECT parse_json(k) AS p FROM rec [RANGE 5 SECONDS])",
    "ISTREAM of TIME": "ISTREAM(SELECT to_time('10:00:00') AS p FROM rec [RANGE 5 SECONDS])",
    "weeks as lengths": "SELECT k FROM rec [RANGE 1 WEEK]",
    "months as lengths": "SELECT k FROM rec [RANGE 1 MONTH]",
    "ON LATE FAIL in CREATE STREAM": "CREATE STREAM former_fails (ROWTIME ts TIMESTAMP, k STRING) FROM arrived ON LATE FAIL",
    "an aggregate of your own without GROUP BY": "SELECT former_greatest(v) AS m FROM rec [RANGE 5 SECONDS]",
    "the system clock": "SELECT k FROM rec [RANGE 5 SECONDS] WHERE ts < current_timestamp()",
    "chance": "SELECT k, rand() AS r FROM rec [RANGE 5 SECONDS]",
}

EMIT = {
    "EMIT in a subquery": "SELECT k, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM log GROUP BY k EMIT STREAM) GROUP BY k",
    "EMIT in a view": (COUNTS, "SELECT * FROM counted"),
    "EMIT in INSERT": (COUNTS, "INSERT INTO u SELECT k, n FROM counted"),
    "ROLLUP": "SELECT k, COUNT(*) AS n FROM log GROUP BY ROLLUP (k) EMIT STREAM",
    "CUBE": "SELECT k, COUNT(*) AS n FROM log GROUP BY CUBE (k, v) EMIT STREAM",
    "GROUPING SETS": "SELECT k, COUNT(*) AS n FROM log GROUP BY GROUPING SETS ((k), ()) EMIT STREAM",
    "LATERAL VIEW": "SELECT k, x FROM log LATERAL VIEW explode(array(v, v + 1)) AS x EMIT STREAM",
    "LATERAL subqueries": "SELECT log.k, m FROM log, LATERAL (SELECT MAX(v) AS m FROM log2 WHERE log2.k = log.k) EMIT STREAM",
    "PIVOT": "SELECT * FROM (SELECT k, v FROM log) PIVOT (COUNT(*) FOR v IN (1, 2)) EMIT STREAM",
    "WITH inside of a query": "SELECT * FROM (WITH x AS (SELECT k, COUNT(*) AS n FROM log GROUP BY k) SELECT * FROM x) "
    "EMIT STREAM",
    "recursion": "WITH RECURSIVE x(v) AS (SELECT MIN(v) FROM log UNION ALL SELECT v + 1 FROM x WHERE v < 3) "
    "SELECT v FROM x EMIT STREAM",
    "versions of tables": "SELECT a.k, r.v FROM log AS a JOIN r FOR SYSTEM_TIME AS OF a.ts ON a.k = r.k EMIT STREAM",
    "versions in views": (
        f"CREATE OR REPLACE TEMPORARY VIEW versions AS SELECT a.k, b.v FROM log AS a JOIN {VERSIONS} ON a.k = b.k",
        "SELECT * FROM versions EMIT STREAM",
    ),
    "versions as of what is no column": "SELECT a.k, b.v FROM log AS a JOIN log2 FOR SYSTEM_TIME AS OF "
    "(a.ts - INTERVAL 1 SECOND) AS b ON a.k = b.k EMIT STREAM",
    "versions by USING": f"SELECT k, b.v FROM log AS a JOIN {VERSIONS} USING (k) EMIT STREAM",
    "versions by RIGHT JOIN": f"SELECT a.k, b.v FROM log AS a RIGHT JOIN {VERSIONS} ON a.k = b.k EMIT STREAM",
    "groups over joins of near times": f"SELECT a.ts, COUNT(*) AS n FROM log AS a JOIN log2 AS b ON {NEAR} GROUP BY a.ts {FINAL}",
    "subqueries for one value by equal times": "SELECT x.ts, (SELECT MAX(v) FROM log2 WHERE log2.ts = x.ts) AS m "
    f"FROM log AS x {FINAL}",
    "subqueries for one value in an interval": f"SELECT a.ts, (SELECT MAX(v) FROM log2 AS b WHERE {NEAR}) AS m FROM log AS a {FINAL}",
    "groups by the column of FULL JOIN USING": f"SELECT ts, COUNT(*) AS n FROM log FULL JOIN log2 USING (ts) GROUP BY ts {FINAL}",
    "groups by COALESCE of both sides": "SELECT COALESCE(a.ts, b.ts) AS z, COUNT(*) AS n FROM log AS a "
    f"FULL JOIN log2 AS b ON a.ts = b.ts GROUP BY COALESCE(a.ts, b.ts) {FINAL}",
    "ORDER BY and LIMIT by a time that is not shown": f"SELECT k, v FROM log ORDER BY ts LIMIT 5 {FINAL}",
    "STATE LIFETIME of DISTINCT": "SELECT DISTINCT k FROM log EMIT STREAM STATE LIFETIME 1 HOUR",
    "STATE LIFETIME over joins": "SELECT log.k, COUNT(*) AS n FROM log JOIN log2 ON log.k = log2.k GROUP BY log.k "
    "EMIT STREAM STATE LIFETIME 5 SECONDS",
    "STATE LIFETIME of groups of groups": "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM log GROUP BY k) "
    "GROUP BY n EMIT STREAM STATE LIFETIME 5 SECONDS",
    "windows in brackets with EMIT": "SELECT k, COUNT(*) AS n FROM log [RANGE 5 SECONDS] GROUP BY k EMIT STREAM",
    "WINDOW BY with EMIT": f"SELECT t.k, COUNT(w) AS n FROM log {W} EMIT STREAM",
    "MATCH_RECOGNIZE with EMIT": f"SELECT * FROM log {matches()} EMIT STREAM",
    "a lag of a recorded table": f"CREATE STREAM former_lag {A_LOG} FROM arrived LAG 1 SECOND",
    "EMIT into a named stream": "START INSERT INTO outs SELECT wend AS ts, k, COUNT(*) AS n "
    f"FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 5 SECONDS) GROUP BY k, wend {FINAL}",
    "the past of streaming DataFrames": "SELECT k, COUNT(*) AS n FROM s GROUP BY k AS OF SYSTEM TIME '2026-01-01'",
    "table functions of your own AFTER WATERMARK": f"SELECT ts, k FROM former_same(TABLE log) {FINAL}",
}

STATEMENTS = {
    "permanent views over windows": (
        f"CREATE VIEW former_view AS SELECT t.k FROM r {W}",
        "SELECT * FROM former_view",
    ),
    "CACHE TABLE AS over windows": f"CACHE TABLE former_cache AS SELECT t.k FROM r {W}",
    "two WINDOW BY in one SELECT": f"SELECT t.k FROM r {W} {W}",
    "WHERE after the clause": f"SELECT t.k FROM r {W} WHERE t.k = 'a'",
    "GROUP BY after the clause": f"SELECT t.k, COUNT(*) AS n FROM r {W} GROUP BY t.k",
    **{
        f"GROUP BY {form.split()[0]} before the clause": f"SELECT t.k, COUNT(w) AS n FROM r GROUP BY {form} LET v = SUM(v) {W}"
        for form in ("ROLLUP (k, ts)", "CUBE (k, ts)", "GROUPING SETS ((k, ts))")
    },
    "GROUP BY ALL before the clause": f"SELECT t.k, COUNT(w) AS n FROM r GROUP BY ALL {W}",
    "QUALIFY before the clause": "SELECT t.k, COUNT(w) AS n FROM r "
    f"QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) > 1 {W}",
    "named windows before the clause": f"SELECT t.k, COUNT(w) AS n FROM r WINDOW x AS (PARTITION BY k ORDER BY ts) {W}",
    "WINDOW BY in a recursion": "WITH RECURSIVE x(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM "
    f"(SELECT t.v FROM x {UNKEYED.replace('ORDER BY ts', 'ORDER BY v')}) WHERE v < 3) SELECT * FROM x",
    "a block with WINDOW BY that reads outer columns": "SELECT k, (SELECT COUNT(*) FROM "
    f"(SELECT t.v FROM r WHERE r.k = o.k {UNKEYED})) AS n FROM r AS o",
    "pipes": f"FROM r |> WHERE v > 0 |> {W} |> SELECT t.k",
    "FROM before SELECT": f"FROM r SELECT t.k, COUNT(w) AS n {W}",
    "WINDOW BY in a script over what it makes": "BEGIN CREATE OR REPLACE TEMPORARY VIEW former_rows AS SELECT * FROM r; "
    f"SELECT t.k, COUNT(w) AS n FROM former_rows {W}; END",
    "WINDOW BY in a SQL function": (
        "CREATE OR REPLACE TEMPORARY FUNCTION former_count(x STRING) RETURNS BIGINT RETURN "
        f"(SELECT COUNT(*) FROM (SELECT t.v FROM r WHERE k = x {UNKEYED}))",
        "SELECT former_count('a')",
    ),
    "materialized views": f"CREATE MATERIALIZED VIEW former_stored AS SELECT t.k FROM r {W}",
}

PATTERNS = {
    "DURATION MULTIPLES OF": "SELECT * FROM r MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n "
    "PATTERN (a b+) DURATION MULTIPLES OF INTERVAL 1 SECOND DEFINE b AS b.v > PREV(b.v))",
    "windows with patterns over joins": "SELECT r.k, FIRST_VALUE(r.v) OVER w AS x FROM r JOIN keys ON r.k = keys.k "
    f"{FRAMED.replace('BY k', 'BY r.k')}",
    "windows with patterns over groups": "SELECT k, FIRST_VALUE(ts) OVER w AS x FROM r GROUP BY k, ts "
    f"{FRAMED.replace('b.v > PREV(b.v)', 'b.ts > PREV(b.ts)')}",
    "windows with patterns beside WINDOW BY": f"SELECT t.k, COUNT(w) AS n FROM (SELECT ts, k, FIRST_VALUE(v) OVER w AS v FROM r {FRAMED}) {W}",
    "windows with patterns that name another window": "SELECT k, FIRST_VALUE(v) OVER w AS x FROM r "
    f"WINDOW q AS (PARTITION BY k ORDER BY ts), w AS (q {FRAME})",
    "nth_value over them": f"SELECT k, NTH_VALUE(v, 2) OVER w AS x FROM r {FRAMED}",
    "aggregates outside of the kernel over them": f"SELECT k, regr_slope(v, v) OVER w AS x FROM r {FRAMED}",
    "WITHIN of a column": "SELECT * FROM r MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a b+) "
    "WITHIN make_dt_interval(0, 0, 0, v + 1) DEFINE b AS b.v > PREV(b.v))",
    "WITHIN over a descending key": "SELECT * FROM r MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts DESC MEASURES COUNT(*) AS n "
    "PATTERN (a b+) WITHIN INTERVAL 9 SECONDS DEFINE b AS b.v > PREV(b.v))",
    "DURATION over decimals": "SELECT * FROM (SELECT k, v, CAST(v AS DECIMAL(20, 2)) AS ts FROM r) MATCH_RECOGNIZE "
    "(PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a b*) DURATION 2 DEFINE b AS b.v > PREV(b.v))",
    "MATCH_NUMBER() in DEFINE beside ALL MATCHES": "SELECT * FROM r MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
    "MEASURES COUNT(*) AS n ALL MATCHES PATTERN (a b+) DEFINE b AS b.v > PREV(b.v) AND MATCH_NUMBER() < 5)",
    "over windows in brackets": f"SELECT * FROM rec [RANGE 5 SECONDS] {matches()}",
    "beside windows in brackets": f"SELECT m.n FROM (SELECT * FROM r {matches()}) AS m, rec [ROWS 1] AS x",
    **{
        name: f"SELECT * FROM r {clause}"
        for name, clause in {
            "PERMUTE of seven": matches(pattern="(PERMUTE(a, b, c, d, e, f, g))"),
            "no ORDER BY": matches(order=""),
            "functions of several rows": matches(define="upper(concat(a.k, b.k)) = 'AA'"),
            "regular expressions": matches(define="concat(a.k, b.k) RLIKE 'a+'"),
            "casts of texts": matches(define="CAST(concat(a.v, b.v) AS INT) > 3"),
            "functions of your own": matches(define="former_sum(a.v, b.v) > 3"),
            "a time and an interval of another row": matches(
                define="b.ts < PREV(b.ts) + make_dt_interval(0, 0, 0, PREV(b.v) + 5)"
            ),
            "lists in DEFINE": matches(define="size(collect_list(b.v)) < 3"),
            "structs in DEFINE": matches(define="MAX(struct(b.v)).v < 4"),
            "intervals in DEFINE": matches(define="MAX(make_dt_interval(0, 0, 0, b.v)) < INTERVAL 1 HOUR"),
            "aggregates over CLASSIFIER()": matches(define="COUNT(CLASSIFIER()) < 3"),
            "MATCH_NUMBER() in a navigation": matches("LAST(MATCH_NUMBER()) AS n"),
            "MATCH_NUMBER() in an aggregate": matches("SUM(MATCH_NUMBER()) AS n"),
            "CLASSIFIER() beside values in PREV": matches(define="PREV(CLASSIFIER() || b.k) IS NOT NULL"),
            "aggregates outside of the kernel": matches("regr_slope(b.v, b.v) AS n"),
            "FILTER of first values": matches("FIRST_VALUE(b.v) FILTER (WHERE b.v > 1) AS n"),
            "OVER in the clause": matches("SUM(b.v) OVER () AS n"),
            "subqueries in the clause": matches("(SELECT MAX(v) FROM r) AS n"),
            "offsets that are parameters": matches("LAST(b.v, :n) AS n"),
        }.items()
    },
}

SECTIONS = {
    "Live queries": LIVE,
    "Streams": STREAMS,
    "EMIT": EMIT,
    "Statements": STATEMENTS,
    "MATCH_RECOGNIZE": PATTERNS,
}

STILL = {
    "another order than the rowtime's": ("ORDER_NOT_ROWTIME", "nature"),
    "SELECT STREAM that leaves the rowtime out": ("ORDER_NOT_ROWTIME", "nature"),
    "windows by another time than their label row's": ("UNKNOWN_ROWTIME", "nature"),
    "a relation in INSERT INTO": ("UNSUPPORTED_STATEMENT", "nature"),
    "CHANGELOG OF beside windows": ("UNSUPPORTED_STREAM", "nature"),
    "CHANGELOG OF as a view": ("UNSUPPORTED_STREAM", ""),
    "rank over windows with patterns": ("UNSUPPORTED_STREAM", ""),
    "lag over windows with patterns": ("UNSUPPORTED_STREAM", ""),
    "STATE LIFETIME over joins": ("UNSUPPORTED_QUERY", ""),
    "DURATION MULTIPLES OF": ("UNSUPPORTED_CLAUSE", "nature"),
    "MATCH_NUMBER() in DEFINE beside ALL MATCHES": ("UNSUPPORTED_CONDITION", "nature"),
    "a table with partitions as a sink": ("UNSUPPORTED_SINK", ""),
    "processing times in a column": ("UNSUPPORTED_STREAM", ""),
    "TIMESTAMP beside DATE": ("MIXED_ROWTIMES", ""),
    "ISTREAM of variants": ("UNORDERABLE_TYPE", "Spark"),
    "ISTREAM of TIME": ("UNSUPPORTED_TIME_TYPE", "Spark"),
    "months as lengths": ("INVALID_WINDOW_SIZE", "nature"),
    "the system clock": ("SYSTEM_CLOCK", "nature"),
    "chance": ("NONDETERMINISTIC_QUERY", "nature"),
    "recursion": ("UNSUPPORTED_QUERY", ""),
    "versions of tables": ("_LEGACY_ERROR_TEMP_0056", "Spark"),
    "groups over joins of near times": ("NEVER_COMPLETE", ""),
    "subqueries for one value in an interval": ("NEVER_COMPLETE", ""),
    "windows in brackets with EMIT": ("MIXED_CLOCKS", ""),
    "WINDOW BY with EMIT": ("MIXED_CLOCKS", ""),
    "MATCH_RECOGNIZE with EMIT": ("MIXED_CLOCKS", ""),
    "the past of streaming DataFrames": ("UNSUPPORTED_STREAM", "nature"),
    "table functions of your own AFTER WATERMARK": ("UNSUPPORTED_QUERY", ""),
    "two WINDOW BY in one SELECT": ("PARSE_SYNTAX_ERROR", "nature"),
    "WINDOW BY in a recursion": ("TABLE_OR_VIEW_NOT_FOUND", "nature"),
    "materialized views": ("UNSUPPORTED_STATEMENT", "Spark"),
    "OVER in the clause": ("UNSUPPORTED_MEASURE", "nature"),
}
"""What still is refused: the condition, and why."""

FORMER = tuple(
    Former(section, name, (case,) if isinstance(case, str) else case, *STILL.get(name, (None, "")))
    for section, cases in SECTIONS.items()
    for name, case in cases.items()
)
