"""Operators over relations that vary: run for whole logs, each gives what its query means at each instant."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.spark.relations.test_continuous_property import changes, declare
from windrow import Session
from windrow.errors import WindrowError

S = [(0, 1, 3), (1, 2, None), (1, 1, 1), (3, None, 2), (3, 1, 0)]
T = [(0, 2, 1), (1, 1, None), (1, 1, 4), (3, 0, 0)]

JOINS = [
    "SELECT a.k, a.v, b.v AS w FROM s [RANGE 3] a {} JOIN t [ROWS 3] b ON a.k = b.k",
    "SELECT a.k, a.v, b.v AS w FROM s [RANGE 3] a {} JOIN t [ROWS 3] b ON a.k = b.k AND a.v < b.v",
    "SELECT a.k, a.v, b.v AS w FROM s [RANGE 3] a {} JOIN t [ROWS 3] b ON a.v < b.v WHERE a.k IS NOT NULL",
    "SELECT *, a.v + 1 FROM s [RANGE 3] a {} JOIN t [ROWS 3] b USING (k) WHERE k > 0 OR k IS NULL",
    "SELECT k, COUNT(*) FROM s [RANGE 3] {} JOIN t [ROWS 3] USING (k, ts) GROUP BY k",
    "SELECT * FROM s [RANGE 3] NATURAL {} JOIN t [RANGE 5]",
    "SELECT n.v AS m, a.v FROM names n {} JOIN s [ROWS 3] a ON n.k = a.k",
]
HALVES = [
    "SELECT k, v FROM s [RANGE 3] a {} JOIN t [ROWS 3] b ON a.k = b.k",
    "SELECT k, v FROM s [RANGE 3] a {} JOIN t [ROWS 3] b ON a.k = b.k AND a.v < b.v",
    "SELECT k, v FROM s [RANGE 3] a {} JOIN t [ROWS 1] b",
    "SELECT * FROM s [RANGE 3] a {} JOIN t [ROWS 3] b USING (k)",
    "SELECT * FROM names n {} JOIN s [ROWS 3] a ON n.k = a.k",
]
REQUESTED = [
    "SELECT k, v FROM s [RANGE 3] WHERE v IN (SELECT v FROM t [ROWS 2])",
    "SELECT k, v FROM s [RANGE 3] WHERE v NOT IN (SELECT v FROM t [ROWS 2])",
    "SELECT k, v NOT IN (SELECT v FROM t [ROWS 2]) AS missing FROM s [RANGE 3]",
    "SELECT k FROM s [ROWS 3] WHERE NOT (v IN (SELECT v FROM t [NOW]) OR NOT k IN (SELECT 1 FROM t [NOW]))",
    "SELECT k, CASE WHEN v IN (SELECT v FROM t [ROWS 3]) THEN 1 ELSE 0 END AS c FROM s [RANGE 3]",
    "SELECT k, v FROM s [RANGE 3] WHERE EXISTS (SELECT 1 FROM t [ROWS 1] WHERE v > 1)",
    "SELECT k, v FROM s [RANGE 3] a WHERE EXISTS (SELECT * FROM t [ROWS 2] b WHERE a.k = b.k AND a.v < b.v)",
    "SELECT k, NOT EXISTS (SELECT * FROM t [ROWS 2] b WHERE a.k = b.k) AS alone FROM s [RANGE 3] a",
    "SELECT k, v FROM s [RANGE 3] a WHERE v IN (SELECT b.v FROM t [ROWS 3] b WHERE a.k = b.k)",
    "SELECT k, v FROM s [RANGE 3] WHERE v > (SELECT AVG(v) FROM t [ROWS 3])",
    "SELECT k, v, (SELECT COUNT(*) FROM t [RANGE 2]) AS n FROM s [RANGE 3]",
    "SELECT k, (SELECT MAX(v) FROM t [RANGE 2] HAVING COUNT(*) > 1) AS n FROM s [RANGE 3]",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 3] WHERE k IN (SELECT k FROM t [ROWS 4]) GROUP BY k",
    "SELECT v FROM names WHERE k IN (SELECT k FROM s [ROWS 2])",
    "SELECT k, v FROM s [RANGE 3] WHERE v = (SELECT MAX(v) FROM s [RANGE 3]) OR k IN (SELECT k FROM t [NOW])",
    "SELECT a.k FROM s [RANGE 3] a, t [RANGE 3] b WHERE a.k = b.k AND a.v >= (SELECT MIN(v) FROM t [ROWS 2])",
]
FRAMES = [
    "SELECT k, SUM(v) OVER (PARTITION BY k) AS t FROM s [RANGE 3]",
    "SELECT k, ts, ROW_NUMBER() OVER (ORDER BY ts, v, k) AS n FROM s [ROWS 3]",
    "SELECT k, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS n, COUNT(*) OVER () AS c FROM s [ROWS 4]",
    "SELECT k, SUM(v) OVER w AS t FROM s [RANGE 3] WHERE v > 0 WINDOW w AS (PARTITION BY k, ts)",
    "SELECT k, ts, v FROM s [RANGE 4] QUALIFY RANK() OVER (PARTITION BY k ORDER BY v DESC) = 1",
    "SELECT k, n FROM (SELECT k, RANK() OVER (PARTITION BY k ORDER BY ts) AS n FROM s [RANGE 5]) WHERE n > 1",
    "SELECT DISTINCT k, MAX(v) OVER (PARTITION BY k % 2) AS m FROM s [RANGE 5]",
    "SELECT a.k, SUM(b.v) OVER (PARTITION BY a.k, b.k) AS t FROM s [ROWS 3] a, t [ROWS 2] b",
    "SELECT k, FIRST_VALUE(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY ts, v, n) AS f FROM s [RANGE 2]",
]
FIRST = [
    "SELECT k, v, ts FROM s [RANGE 5] ORDER BY v DESC, k, ts LIMIT 2",
    "SELECT k, v AS w, ts FROM s [RANGE 5] ORDER BY w NULLS LAST, ts LIMIT 2 OFFSET 1",
    "SELECT k FROM s [RANGE UNBOUNDED] ORDER BY ts + k, v LIMIT 3",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k ORDER BY COUNT(*) DESC, k LIMIT 1",
    "SELECT k, v FROM s [NOW] UNION ALL SELECT k, v FROM t [ROWS 2] ORDER BY v, k LIMIT 2",
    "SELECT DISTINCT v FROM s [RANGE 5] ORDER BY v OFFSET 1",
    "SELECT COUNT(*) FROM (SELECT k FROM s [RANGE 5] ORDER BY v, k, ts LIMIT 2)",
    "SELECT v FROM s [RANGE 5] WHERE v IN (SELECT v FROM t [ROWS 5] ORDER BY v LIMIT 2)",
]
GROUPS = [
    "SELECT k, SUM(v), COUNT(*) FROM s [RANGE 3] GROUP BY ALL",
    "SELECT SUM(v), COUNT(*) FROM s [NOW] GROUP BY ALL",
    "SELECT k, v, COUNT(*), GROUPING(k) FROM s [RANGE 3] GROUP BY ROLLUP (k, v)",
    "SELECT k, v % 2, MAX(ts) FROM s [RANGE 3] GROUP BY GROUPING SETS ((k), (v % 2), ())",
    "SELECT k, v, COUNT(*) AS n FROM s [RANGE 3] GROUP BY CUBE (k, v) HAVING COUNT(*) > 1",
    "SELECT k, v, COUNT(*) AS c, GROUPING_ID(k, v) AS g FROM s [RANGE 3] GROUP BY CUBE (k, v)",
    "SELECT k, COUNT(*) AS c, GROUPING_ID() AS g FROM s [RANGE 3] GROUP BY ROLLUP (k)",
    "SELECT k, v, COUNT(*) AS c FROM s [RANGE 3] GROUP BY k, v WITH ROLLUP",
    "SELECT k, v, COUNT(*) AS c FROM s [RANGE 3] GROUP BY k, v GROUPING SETS ((k), (v))",
    "SELECT k, COUNT(*), RANK() OVER (ORDER BY COUNT(*), k) AS r FROM s [RANGE 3] GROUP BY ROLLUP (k)",
    "SELECT COUNT(*) AS c FROM s [RANGE 1] GROUP BY GROUPING SETS (())",
]
NAMES = [
    "SELECT a.k FROM s [RANGE 3] a JOIN t [RANGE 3] b USING (k) WHERE 1 IN (SELECT k FROM names)",
    "SELECT k, (SELECT MAX(k) FROM names) AS m FROM s [RANGE 3] a JOIN t [RANGE 3] b USING (k)",
    "SELECT a.n FROM s [RANGE 3] a JOIN t [RANGE 3] b USING (k) WHERE a.v IN (SELECT k FROM t [ROWS 2])",
    "SELECT struct(a.v AS k).k AS w, k FROM s [RANGE 3] a JOIN t [RANGE 3] b USING (k)",
    "SELECT * FROM s [RANGE 3] a JOIN t [RANGE 3] b USING (v, k)",
    "SELECT * FROM s [RANGE 3] a NATURAL JOIN (SELECT v, 1 AS x, k FROM t [RANGE 3]) b",
    "SELECT * FROM s [RANGE 3] a JOIN t [RANGE 3] b USING (k) JOIN names c ON c.v = 5",
    "SELECT * FROM s [RANGE 3] a LEFT SEMI JOIN t [ROWS 3] b USING (k)",
    "SELECT transform(array(1), k -> k + 1) AS w, k FROM s [RANGE 3] a JOIN t [RANGE 3] b USING (k)",
    "SELECT a.k AS x, b.k, k AS m FROM s [NOW] a FULL JOIN t [RANGE 3] b USING (k) WHERE a.k > 0 OR b.k = 0",
]
BESIDE_GROUPS = [
    "SELECT k, RANK() OVER (ORDER BY COUNT(*) DESC) AS r, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k",
    "SELECT k, SUM(v) / SUM(SUM(v)) OVER () AS share FROM s [RANGE 3] GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k HAVING COUNT(*) > (SELECT AVG(v) FROM t [RANGE 3])",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k HAVING k NOT IN (SELECT k FROM t [RANGE 3])",
    "SELECT k, COUNT(*) AS n, (SELECT MAX(v) FROM t [RANGE 3]) AS m FROM s [RANGE 3] GROUP BY k",
    "SELECT 1 AS one FROM s [RANGE 1] HAVING true",
    "SELECT k, SUM(v) OVER w AS t, COUNT(*) OVER u FROM s [RANGE 3] WINDOW w AS (PARTITION BY k), u AS w",
    "SELECT k, v, (SELECT MAX(b.v) FROM t [RANGE 5] b WHERE b.k = a.k) AS m FROM s [RANGE 3] a",
    "SELECT k FROM s [NOW] a WHERE v > (SELECT COUNT(*) - 1 FROM t [RANGE 5] b WHERE b.k = a.k AND b.v > 0)",
]
COMPUTED = [
    "SELECT a.k FROM s [RANGE 3] a JOIN t [RANGE 3] b ON b.k <> 0 AND a.v * 5 = 10 / b.k",
    "SELECT a.k FROM s [RANGE 3] a, t [RANGE 3] b WHERE b.v < a.v AND b.k <> 0 AND 10 / b.k > 4",
    "SELECT a.k, inline(array(struct(v, v + 1))) FROM s [RANGE 2] a",
    "SELECT k, EXISTS (SELECT 1 FROM t [NOW] b WHERE b.v = a.v OR b.k = a.k) AS e FROM s [RANGE 2] a",
    "SELECT k FROM names WHERE k > 0 UNION SELECT k FROM s [RANGE 2]",
    "SELECT k, v FROM s [RANGE 5] ORDER BY v, k, ts LIMIT 1 + 1",
    # rows with maps and variants, which Spark does not compare, and which have no partner
    "SELECT a.m[1] AS m, b.v FROM (SELECT k, map(1, v) AS m FROM s [RANGE 3]) a LEFT JOIN t [RANGE 3] b"
    " ON a.k = b.k",
    "SELECT CAST(a.m AS INT) AS m, b.v FROM (SELECT k, parse_json('1') AS m FROM s [RANGE 3]) a"
    " FULL JOIN t [RANGE 3] b ON a.k = b.k",
    # an aggregate that is none by its name
    "SELECT schema_of_variant_agg(parse_json(CAST(v AS STRING))) AS n FROM s [RANGE 3]",
]
# subqueries that read the query around them by more than equalities, in ON, without FROM, of several rows
UNNESTED = [
    "SELECT k, (SELECT MAX(b.v) FROM t [RANGE 5] b WHERE b.k < a.k) AS m FROM s [RANGE 3] a",
    "SELECT k, (SELECT COUNT(*) FROM t [RANGE 5] b WHERE b.k <= a.k OR b.v = a.v) AS n FROM s [RANGE 3] a",
    "SELECT k, (SELECT MAX(v) FROM t [RANGE 3] GROUP BY k ORDER BY k LIMIT 1) AS m FROM s [RANGE 3]",
    "SELECT k, v, (SELECT v FROM t [ROWS 5] b WHERE b.k = a.k ORDER BY b.v DESC LIMIT 1) AS m FROM s [NOW] a",
    "SELECT k, (SELECT DISTINCT b.k FROM t [RANGE 5] b WHERE b.k = a.k) AS m FROM s [RANGE 3] a",
    "SELECT k, v FROM s [RANGE 3] WHERE v = (SELECT v FROM t [ROWS 1])",
    "SELECT k FROM s [NOW] a WHERE EXISTS (SELECT 1 FROM t [ROWS 4] b WHERE b.v > a.v GROUP BY b.k)",
    "SELECT k FROM s [RANGE 3] a WHERE v IN (SELECT MAX(b.v) FROM t [RANGE 5] b WHERE b.k <> a.k)",
    "SELECT k FROM s [RANGE 3] a WHERE v NOT IN (SELECT MAX(b.v) FROM t [RANGE 5] b WHERE b.k <> a.k)",
    "SELECT k FROM s [RANGE 3] WHERE EXISTS (SELECT 1 FROM t [RANGE 5] WHERE t.k = s.k AND t.v < s.v)",
    "SELECT k, v FROM s [RANGE 3] a WHERE EXISTS (SELECT 1 FROM t [RANGE 2] a WHERE k = 1)",
    "SELECT a.k FROM s [RANGE 3] a JOIN t [ROWS 3] b ON a.k = b.k AND a.v IN (SELECT v FROM t [ROWS 2])",
    "SELECT a.k, b.v FROM s [ROWS 3] a LEFT JOIN t [ROWS 2] b ON b.k = a.k"
    " AND EXISTS (SELECT 1 FROM t [NOW])",
    "SELECT a.k, b.v FROM s [ROWS 3] a FULL JOIN t [ROWS 2] b ON b.k = a.k"
    " AND b.v IN (SELECT v FROM s [NOW])",
    "SELECT a.k, q.m FROM s [RANGE 3] a, LATERAL (SELECT MAX(v) AS m FROM t [RANGE 3] b WHERE b.k = a.k) q",
    "SELECT a.k, q.* FROM s [NOW] a LEFT JOIN LATERAL (SELECT b.v, b.k AS l FROM t [ROWS 5] b"
    " WHERE b.k = a.k ORDER BY b.v LIMIT 1) q ON q.l > 0",
    "SELECT a.k, q.v FROM s [NOW] a JOIN LATERAL (SELECT v FROM t [NOW]) q ON q.v > a.v",
    # one after the other, which read the same rows
    "SELECT k, (SELECT COUNT(DISTINCT b.v) FROM t [RANGE 5] b WHERE b.k >= a.k) AS m, (SELECT COUNT(*) FROM"
    " t [RANGE 5] b WHERE b.k >= a.k) + (SELECT COUNT(*) FROM t [NOW] b WHERE b.k >= a.k) AS o"
    " FROM s [RANGE 3] a",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 3] a GROUP BY k HAVING COUNT(*) >"
    " (SELECT COUNT(*) FROM t [RANGE 3] b WHERE b.k < a.k)",
    "SELECT a.k, x.n FROM s [RANGE 3] a JOIN t [RANGE 2] b USING (k),"
    " LATERAL (SELECT COUNT(*) AS n FROM t [RANGE 4] c WHERE c.v < b.v) x",
    "SELECT k FROM s [RANGE 3] a JOIN t [RANGE 2] b USING (k) WHERE EXISTS"
    " (SELECT 1 FROM t [RANGE 4] c WHERE c.k < a.k OR c.v = b.v)",
    "SELECT k, (SELECT MAX(x) FROM (SELECT b.v AS x FROM t [NOW] b WHERE b.k < a.k)) AS x FROM s [NOW] a",
    "SELECT k FROM s [NOW] a WHERE v IN (SELECT b.v FROM t [ROWS 4] b WHERE b.k < a.k"
    " EXCEPT SELECT c.v FROM t [NOW] c WHERE c.k = a.k)",
    "SELECT k, x FROM s [NOW] a, LATERAL (SELECT a.v + 1 AS x) q",
    "SELECT k, x FROM s [RANGE 3] LATERAL VIEW explode(array(v, v + 1)) e AS x",
    "SELECT a.k, p, x FROM s [NOW] a LATERAL VIEW OUTER posexplode(IF(v > 1, array(v, k), NULL)) e p, x"
    " WHERE a.k > 0",
    "SELECT k, SUM(x) AS n FROM s [RANGE 3], LATERAL explode(array(v, 1)) AS e(x) GROUP BY k",
    "SELECT e.*, y FROM s [ROWS 2] JOIN t [ROWS 2] USING (k) LATERAL VIEW stack(2, k, k, 2L, 3L) e"
    " LATERAL VIEW explode(array(col0)) f AS y",
    "SELECT k, explode(array(v, 2)) AS x FROM s [RANGE 3]",
    "SELECT posexplode(array(k, 2)), v FROM s [RANGE 3]",
    "SELECT q.k, x FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k) q"
    " LATERAL VIEW explode(array(n, 1, n)) e AS x",
    "SELECT * EXCEPT (a.v, b.k) FROM s [RANGE 3] a, t [NOW] b WHERE a.k = b.k",
    "SELECT * EXCEPT (v) FROM s [RANGE 3] a, (SELECT k AS other FROM t [NOW]) b WHERE a.k = other",
    "SELECT a.* EXCEPT (v), b.v FROM s [RANGE 3] a, t [NOW] b WHERE a.k = b.k",
    "FROM s [RANGE 3] SELECT k",
    "SELECT k, n FROM (FROM s [RANGE 3] SELECT k, v + 1 AS n WHERE v > 0) q",
    "SELECT a.k, b.v FROM (s [RANGE 3] a JOIN t [RANGE 2] b ON a.k = b.k) WHERE a.v > 0",
    "SELECT k FROM s [NOW] UNION ALL (WITH c AS (SELECT k FROM t [ROWS 2]) SELECT k FROM c)",
    "SELECT (SELECT COUNT(*) FROM s [NOW]) AS n",
    "SELECT 1 AS x WHERE EXISTS (SELECT 1 FROM s [NOW])",
    "SELECT k FROM (WITH c AS (SELECT k, v FROM s [RANGE 3]) SELECT k FROM c WHERE v > 1) q",
    "WITH o AS (WITH c AS (SELECT k, v FROM s [RANGE 3]) SELECT k FROM c WHERE v > 1) SELECT * FROM o",
]
AROUND = [
    "SELECT a.k, q.r FROM s [RANGE 3] a JOIN LATERAL"
    " (SELECT v, RANK() OVER (PARTITION BY v % 2 ORDER BY v) AS r FROM t [RANGE 3] b WHERE b.k = a.k) q",
    "SELECT a.k, q.r FROM s [RANGE 3] a JOIN LATERAL (SELECT v, SUM(v) OVER (ORDER BY v, ts) AS r"
    " FROM t [RANGE 3] b WHERE b.k <= a.k QUALIFY ROW_NUMBER() OVER (ORDER BY v, ts) < 3) q",
    "SELECT k, (SELECT SUM(v) OVER () AS x FROM t [NOW] b WHERE b.k < a.k LIMIT 1) AS x FROM s [NOW] a",
    "SELECT k FROM s [RANGE 3] a WHERE EXISTS"
    " (SELECT RANK() OVER (ORDER BY v) AS r FROM t [RANGE 3] b WHERE b.k = a.k QUALIFY r = 2)",
    "SELECT k FROM s [RANGE 3] a WHERE a.v IN"
    " (SELECT ROW_NUMBER() OVER (ORDER BY v, ts) FROM t [RANGE 3] b WHERE b.k = a.k)",
    "SELECT k, (SELECT v FROM t [RANGE 3] b WHERE b.k = a.k UNION ALL SELECT v + 1 FROM s [RANGE 2] c"
    " WHERE c.k = a.k ORDER BY v DESC LIMIT 1) AS x FROM s [RANGE 3] a",
    "SELECT k, (SELECT b.v + 1 AS w FROM t [RANGE 3] b WHERE b.k = a.k ORDER BY w LIMIT 1) AS x"
    " FROM s [RANGE 3] a",
    "SELECT k, (SELECT b.v + 1 AS w FROM t [RANGE 3] b WHERE b.k = a.k ORDER BY 1 DESC, ts LIMIT 1) AS x"
    " FROM s [RANGE 3] a",
    "SELECT k, (SELECT DISTINCT b.v FROM t [RANGE 3] b WHERE b.k = a.k ORDER BY v NULLS LAST LIMIT 1) AS x"
    " FROM s [RANGE 3] a",
    "SELECT k FROM s [RANGE 3] a WHERE v IN (SELECT v FROM t [RANGE 3] SORT BY v) DISTRIBUTE BY k",
    "SELECT a.k AS i, b.v AS j, c.v FROM s [RANGE 3] a LEFT JOIN t [RANGE 3] b ON a.k = b.k"
    " JOIN s [NOW] c USING (ts)",
    "SELECT * FROM s [RANGE 3] a LEFT JOIN t [RANGE 3] b USING (k) JOIN s [NOW] c USING (v)",
    "SELECT * FROM s [RANGE 3] a FULL JOIN t [RANGE 3] b USING (k) RIGHT JOIN s [NOW] c USING (v)",
]
TURNED = [
    "SELECT * FROM (SELECT k, v FROM s [RANGE 3]) PIVOT (SUM(v) FOR k IN (1, 2))",
    "SELECT * FROM (SELECT ts, k, v FROM s [RANGE 3]) PIVOT (SUM(v) AS t, COUNT(*) AS c FOR k IN (1"
    " AS a, 2 AS b))",
    "SELECT q.a_c, q.v FROM (SELECT ts, k, v FROM s [RANGE 3]) PIVOT (COUNT(ts) AS c, MAX(ts) FOR k"
    " IN (1 AS a, 0)) AS q WHERE v > 0",
    "SELECT * FROM (SELECT ts % 2 AS o, k, v FROM s [RANGE 3]) PIVOT (COUNT(*) FOR (k, v) IN ((1,"
    " 1) AS x, (2, 2)))",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM (SELECT k, v FROM s [RANGE 3]) PIVOT (SUM(v) FOR k IN (1, 2)))",
    "SELECT k FROM s [RANGE 3] WHERE v > (SELECT AVG(x) FROM (SELECT * FROM (SELECT k, v FROM s"
    " [RANGE 3]) PIVOT (SUM(v) FOR k IN (1 AS x, 2 AS w))) q)",
    "SELECT * FROM s [RANGE 2] UNPIVOT (x FOR name IN (k, v))",
    "SELECT * FROM s [RANGE 2] UNPIVOT INCLUDE NULLS (x FOR name IN (k AS `the key`, v))",
    "SELECT u.name, SUM(u.x) AS t FROM (SELECT ts, CAST(k AS INT) AS k, v FROM s [RANGE 2]) UNPIVOT"
    " (x FOR name IN (k, v)) AS u GROUP BY u.name",
    "SELECT * FROM (SELECT ts, k, v, k + 1 AS l FROM s [RANGE 2]) UNPIVOT ((x, y) FOR name IN ((k,"
    " v) AS one, (l, v)))",
    "SELECT k FROM s [RANGE 3] a WHERE EXISTS (SELECT 1 FROM t [RANGE 3] UNPIVOT (x FOR name IN (k,"
    " v)) AS b WHERE b.x = a.k AND b.name = 'v')",
]
COLLATED = [
    "SELECT DISTINCT lower(substr('aAbB', k + 1, 1) COLLATE UTF8_LCASE) AS c FROM s [RANGE 3]",
    "SELECT a.c, b.v FROM (SELECT substr('aAbB', k + 1, 1) COLLATE UTF8_LCASE AS c FROM s [RANGE 3]) a"
    " JOIN (SELECT v, substr('bAbA', k + 1, 1) COLLATE UTF8_LCASE AS c FROM t [RANGE 3]) b ON a.c = b.c",
    "SELECT v, b.c FROM s [RANGE 3] a LEFT JOIN"
    " (SELECT k, substr('bAbA', k + 1, 1) COLLATE UTF8_LCASE AS c FROM t [NOW]) b ON a.k = b.k",
    "SELECT lower(c) AS c, COUNT(*) AS n, MAX(v) AS m FROM"
    " (SELECT v, substr('aAbB', k + 1, 1) COLLATE UTF8_LCASE AS c FROM s [RANGE 3]) a GROUP BY lower(c)",
    "SELECT COUNT(DISTINCT c) AS n FROM"
    " (SELECT substr('aAbB', k + 1, 1) COLLATE UTF8_LCASE AS c FROM s [RANGE 3])",
    "SELECT v, RANK() OVER (PARTITION BY c ORDER BY v) AS r FROM"
    " (SELECT v, substr('aAbB', k + 1, 1) COLLATE UTF8_LCASE AS c FROM s [RANGE 3])",
    "SELECT upper(c) AS c FROM (SELECT substr('aAbB', k + 1, 1) COLLATE UTF8_LCASE AS c FROM s [RANGE 3]"
    " UNION SELECT substr('bAbA', k + 1, 1) COLLATE UTF8_LCASE FROM t [NOW])",
    "SELECT v FROM s [RANGE 3] WHERE substr('aAbB', k + 1, 1) COLLATE UTF8_LCASE IN"
    " (SELECT substr('bAbA', k + 1, 1) COLLATE UTF8_LCASE FROM t [RANGE 3])",
    "SELECT v, substr('aAbB', k + 1, 1) COLLATE UTF8_LCASE AS c FROM s [RANGE 3] ORDER BY v, ts LIMIT 2",
]
# of which Spark computes a part, over pieces of time
IN_PIECES = [
    "SELECT k, (SELECT size(collect_list(v)) FROM t [RANGE 3] b WHERE b.k = a.k) AS n FROM s [RANGE 3] a",
    "SELECT k, (SELECT array_sort(collect_set(v)) FROM t [RANGE 3] b WHERE b.k < a.k) AS n"
    " FROM s [RANGE 3] a",
    "SELECT k, (SELECT size(collect_list(v)) + COUNT(*) FROM t [RANGE 3] b WHERE b.k = a.k"
    " HAVING COUNT(*) < 2) AS n FROM s [RANGE 3] a",
    "SELECT k, wstart, wend, COUNT(*) AS c FROM SESSION(TABLE(SELECT * FROM s [RANGE 9] WHERE k IN"
    " (SELECT k FROM t [RANGE 9])) PARTITION BY k, DESCRIPTOR(ts), gap => 2, maxdur => 3)"
    " GROUP BY k, wstart, wend",
    "SELECT v FROM s [RANGE 3] WHERE (v IN (SELECT v FROM t [ROWS 2])) = false",
    "SELECT v FROM s [RANGE 3] WHERE NOT CASE WHEN v IN (SELECT v FROM t [ROWS 2]) THEN true ELSE false END",
    "SELECT k FROM (SELECT k, v IN (SELECT v FROM t [ROWS 2]) AS b FROM s [RANGE 3]) q WHERE NOT b",
    "SELECT k, (SELECT MAX(v) FROM t [RANGE 3]) IN (SELECT v FROM t [RANGE 3]) AS b FROM s [RANGE 3]",
    "SELECT a.* FROM s [RANGE 3] a FULL JOIN t [RANGE 3] b USING (k)",
    "SELECT b.*, a.* FROM s [RANGE 3] a RIGHT JOIN t [RANGE 3] b USING (v, k)",
]
# IN where Spark computes with its answer, of subqueries that read the query around
ASKED = [
    "SELECT k, v FROM s [RANGE 3] a WHERE (v IN (SELECT b.v FROM t [ROWS 3] b WHERE a.k = b.k)) = false",
    "SELECT k, coalesce(v NOT IN (SELECT b.v FROM t [ROWS 3] b WHERE a.k >= b.k), true) AS u"
    " FROM s [RANGE 3] a",
    "SELECT k, v, (v IN (SELECT b.v FROM t [ROWS 3] b WHERE a.k >= b.k)) IS NULL AS u FROM s [RANGE 3] a",
    "SELECT k FROM (SELECT k, v IN (SELECT b.v FROM t [ROWS 2] b WHERE b.k <= a.k) AS b FROM s [RANGE 3] a) q"
    " WHERE NOT b",
    "WITH x AS (SELECT * FROM t [ROWS 3]) SELECT k, if(v IN (SELECT MAX(b.v) FROM x b WHERE a.k = b.k), 1, 2)"
    " AS u FROM s [RANGE 3] a",
    "SELECT if(k IN (SELECT b.k FROM t [ROWS 3] b WHERE a.k = b.k), 1, 2) AS u, COUNT(*) AS n"
    " FROM s [RANGE 3] a GROUP BY k",
    "SELECT COUNT(*) AS n FROM s [RANGE 3] a"
    " WHERE if(k IN (SELECT b.k FROM t [ROWS 3] b WHERE a.v > b.v), 1, 2) = 1",
    "SELECT k, v FROM s [RANGE 3] a WHERE v IN (SELECT b.v FROM t [ROWS 3] b"
    " WHERE if(b.k IN (SELECT c.k FROM t [ROWS 3] c WHERE c.v > b.v), 1, 2) = 2)",
    "SELECT k, SUM(v) OVER (PARTITION BY k) AS m,"
    " if(k IN (SELECT b.k FROM t [ROWS 3] b WHERE a.v > b.v), 1, 2) AS u FROM s [RANGE 3] a",
    "SELECT k, COUNT(CASE WHEN v IN (SELECT b.v FROM t [ROWS 2] b WHERE b.k >= a.k) THEN 1 END) AS n,"
    " SUM(DISTINCT v) FILTER (WHERE v IN (SELECT v FROM t [ROWS 2])) AS m FROM s [RANGE 3] a GROUP BY k",
    "SELECT k, SUM(v - (SELECT MIN(v) FROM t [ROWS 2])) AS m FROM s [RANGE 3] a GROUP BY k"
    " HAVING COUNT(CASE WHEN EXISTS (SELECT 1 FROM t [ROWS 2] b WHERE b.k = a.k) THEN 1 END) < 2",
    "SELECT k, v FROM s [RANGE 3] a WHERE (k, v) IN (SELECT b.k, b.v FROM t [ROWS 3] b WHERE a.ts >= b.ts)",
    "SELECT a.k, b.v FROM s [RANGE 3] a JOIN t [ROWS 3] b ON a.k = b.k"
    " AND if(a.v IN (SELECT c.v FROM t [ROWS 3] c WHERE c.k = a.k), 1, 2) = 2",
]
# of which Spark evaluates the text as a whole at each piece of time
WHOLE = [
    "SELECT * FROM (SELECT k, v FROM s [RANGE 3]) PIVOT (collect_list(v) FOR k IN (1, 2))",
    "SELECT k FROM s [RANGE 3] UNION ALL VALUES (1L)",
    "SELECT -v AS v FROM s [RANGE 5] ORDER BY v + 0 LIMIT 1",
    "FROM s [RANGE 3] |> SET k = 1 |> WHERE v > 0",
    "SELECT k, v FROM s [RANGE 3] |> SET v = v + 1",
]
QUERIES = [
    *(JOINS[0].format(join) for join in ("LEFT", "RIGHT", "INNER")),
    *(query.format("FULL") for query in JOINS),
    *(query.format("LEFT SEMI") for query in HALVES[::2]),
    *(query.format("LEFT ANTI") for query in HALVES[1:]),
    *REQUESTED,
    *FRAMES,
    *FIRST,
    *GROUPS,
    *NAMES,
    *BESIDE_GROUPS,
    *COMPUTED,
    *UNNESTED,
    *AROUND,
    *TURNED,
    *COLLATED,
    *IN_PIECES,
    *ASKED,
]


@pytest.fixture(scope="module")
def sessions(spark):
    import pyarrow as pa

    names = pa.table({"k": pa.array([0, 1, 1, None], pa.int64()), "v": pa.array([5, 6, 6, 7], pa.int64())})
    found = {}
    for execution in ("batch", "reference"):
        session = Session(spark, execution=execution)
        declare(session, "s", S)
        declare(session, "t", T)
        session.register("names", names)
        found[execution] = session
    return found


@pytest.mark.sampled(every=32)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.usefixtures("interpreted")
def test_an_operator_gives_what_each_instant_gives(sessions, query):
    assert "by Spark at each piece of time" not in sessions["batch"].sql(query).plan()
    assert changes(sessions["batch"], query) == changes(sessions["reference"], query)


@pytest.mark.sampled
@pytest.mark.parametrize("query", WHOLE)
@pytest.mark.usefixtures("interpreted")
def test_what_has_no_nodes_is_evaluated_by_spark_at_each_piece_of_time(sessions, query):
    assert "by Spark at each piece of time" in sessions["batch"].sql(query).plan()
    assert changes(sessions["batch"], query) == changes(sessions["reference"], query)


REFUSED = [
    (
        "SELECT CAST(k AS STRING) COLLATE UTF8_LCASE AS c FROM s [NOW] EXCEPT SELECT 'a' COLLATE UTF8_LCASE",
        "SELECT",
        "COLLATE UTF8_BINARY",
    ),
    (
        "SELECT CAST(k AS STRING) COLLATE UTF8_LCASE AS c FROM s [NOW] ORDER BY c LIMIT 1",
        "ORDER BY",
        "COLLATE UTF8_BINARY",
    ),
    (
        "SELECT DISTINCT make_interval(0, 0, 0, CAST(k AS INT)) AS i FROM s [NOW]",
        "SELECT",
        "to numbers",
    ),
    (
        "FROM s [NOW] |> ORDER BY 2 |> WHERE k > 0 |> LIMIT 1",
        "|> ORDER BY",
        "name columns in ORDER BY",
    ),
    (
        "FROM s [NOW] AS a |> JOIN t [NOW] AS b ON a.k = b.k |> ORDER BY a.v |> WHERE a.k > 0"
        " |> AGGREGATE COUNT(*) AS n GROUP BY a.k |> ORDER BY n |> WHERE k > 0 |> LIMIT 1",
        "|> JOIN",
        "SELECT of several relations",
    ),
]


PIPES = [
    "FROM s |> WHERE v > 0 |> AGGREGATE COUNT(*) AS n, SUM(v) AS total GROUP BY k % 2 AS odd |> WHERE n > 1",
    "FROM s AS a |> WHERE a.k > 0 |> JOIN t AS b ON a.k = b.k |> WHERE a.v < b.v |> EXTEND a.v + b.v AS w"
    " |> SELECT w",
    "FROM s |> WHERE v > 0 |> LEFT JOIN names USING (k) |> DROP ts |> AS q |> SELECT q.k",
    "FROM s |> SELECT k, v AS w |> ORDER BY w DESC, k |> LIMIT 2 |> EXTEND w * 2 AS x |> WHERE s.k < 2",
    "SELECT k, v FROM s WHERE v > 0 |> UNION ALL SELECT k, v FROM t |> AGGREGATE MAX(v) AS m GROUP BY k",
    "FROM s |> WHERE k = 1 |> RIGHT JOIN t USING (k) |> AGGREGATE COUNT(*) AS n",
    "WITH q AS (FROM s |> SELECT k) FROM q |> EXCEPT (FROM t |> SELECT k) |> ORDER BY k |> LIMIT 3",
    "FROM s |> ORDER BY v DESC NULLS FIRST, k, ts |> WHERE k > 0 |> LIMIT 2 |> SELECT k |> OFFSET 1",
    "FROM s |> ORDER BY v, k, ts |> LIMIT 3 |> EXTEND v + 1 AS w |> DROP v |> SET k = -k |> AS q |> LIMIT 1",
    "FROM s AS a |> JOIN t AS b ON a.k = b.k |> SELECT a.k, a.v + b.v AS w, a.ts, b.ts AS u"
    " |> ORDER BY w, k, ts, u |> SELECT k |> LIMIT 2 |> UNION ALL (FROM t |> SELECT k)",
    "FROM (SELECT k, v FROM s) |> PIVOT (SUM(v) FOR k IN (1, 2)) |> SELECT `1`",
    "FROM s AS a JOIN t AS b ON a.k = b.k |> WHERE a.v < b.v OR b.ts > 2 |> LEFT JOIN names AS n ON n.k = a.k"
    " |> SELECT a.v, b.v AS w, n.k",
    "FROM s AS a CROSS JOIN t AS b |> WHERE a.v < b.v |> RIGHT JOIN t AS c ON c.v = a.v AND c.k = b.k"
    " |> SELECT a.v, c.k",
    "FROM s AS a JOIN t AS b ON a.k = b.k |> ORDER BY b.v DESC, a.v, a.ts, b.ts |> WHERE a.k > 0"
    " |> SELECT a.v, b.v AS w |> LIMIT 2",
    "FROM s AS a JOIN t AS b ON a.k = b.k |> ORDER BY b.v, a.v, a.ts, b.ts |> SELECT * |> OFFSET 1",
    "FROM s |> WHERE v > 0 ORDER BY v, k, ts LIMIT 2 OFFSET 1",
    "FROM s |> WHERE k > 0 |> AGGREGATE MAX(v) AS m GROUP BY k ORDER BY m, k LIMIT 1",
]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("query", PIPES)
def test_a_pipe_over_windows_gives_what_spark_gives_of_each_instant(spark, sessions, query):
    session = sessions["batch"]
    of_streams = re.sub(r"FROM (s|t)\b|JOIN (t)\b", lambda found: f"{found[0]} [RANGE 3]", query)
    relation = session.sql(of_streams)
    has_nodes = "|> SET" not in query
    assert ("by Spark at each piece of time" not in relation.plan()) == has_nodes
    for at in (0, 1, 3, 4):
        for name in ("s", "t"):
            rows = session.sql(f"SELECT * FROM {name} [RANGE 3]").at(at).df
            rows.createOrReplaceTempView(f"__{name}")
        of_tables = re.sub(r"(FROM|JOIN) (s|t)\b(?! AS)", r"\1 \2 AS \2", query)
        of_tables = re.sub(r"(FROM|JOIN) (s|t)\b", r"\1 __\2", of_tables)
        expected = spark.sql(of_tables).collect()
        assert Counter(map(tuple, relation.at(at).df.collect())) == Counter(map(tuple, expected))


@pytest.mark.parametrize(("query", "place", "hint"), REFUSED)
def test_what_cannot_be_evaluated_is_refused_at_its_place(sessions, query, place, hint):
    with pytest.raises(WindrowError) as caught:
        sessions["batch"].sql(query)
    assert caught.value.condition == "UNSUPPORTED_QUERY"
    assert query[caught.value.span.start :].startswith(place)
    assert hint in caught.value.hint


def test_a_name_of_two_relations_after_except_is_an_error_as_spark_has_it(sessions):
    for session in sessions.values():
        with pytest.raises(WindrowError, match="AMBIGUOUS_REFERENCE"):
            session.sql("SELECT * EXCEPT (v) FROM s [RANGE 3] a, t [NOW] b WHERE a.k = b.k").changelog()


def test_a_subquery_for_one_value_that_gives_several_is_an_error_at_its_place(sessions):
    query = "SELECT k, (SELECT v FROM t [RANGE 5]) AS m FROM s [RANGE 3]"
    for session in sessions.values():
        with pytest.raises(WindrowError) as caught:
            session.sql(query).changelog().collect()
        assert caught.value.condition == "SCALAR_SUBQUERY_TOO_MANY_ROWS"
    with pytest.raises(WindrowError) as caught:
        sessions["batch"].sql(query).changelog().collect()
    assert query[caught.value.span.start :].startswith("(SELECT v")
