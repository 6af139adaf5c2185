"""The paper's queries as nested loops: its figures 13, 14, 17 and 33 and its appendix, in Spark SQL.

Spark's cost of each grows with the square of a station's rows, more or less.
"""

from __future__ import annotations

__all__ = ["LABEL", "SESSION", "TUMBLING", "UNBOUNDED", "WEEK"]

WEEK = """
SELECT s.station, s.date, AVG(t.val) AS value
FROM readings s JOIN readings t
  ON t.station = s.station AND t.date >= s.date AND t.date <= s.date + INTERVAL '7' DAY
GROUP BY s.station, s.date
"""

UNBOUNDED = """
WITH starts AS (SELECT station, date FROM readings WHERE val < 25),
latest AS (SELECT station, MAX(date) AS date FROM readings GROUP BY station),
stops AS (
    SELECT t.station, t.date
    FROM readings t JOIN latest ON latest.station = t.station
    WHERE t.val >= 25 OR t.date = latest.date
),
boundaries AS (
    SELECT starts.station, starts.date AS first_date, MIN(stops.date) AS stop_date
    FROM starts JOIN stops ON stops.station = starts.station AND stops.date >= starts.date
    GROUP BY starts.station, starts.date
)
SELECT b.station, b.first_date AS date, AVG(t.val) AS value
FROM boundaries b JOIN readings t ON t.station = b.station AND t.date >= b.first_date
 AND (t.date < b.stop_date OR t.date = b.stop_date AND t.val < 25)
GROUP BY b.station, b.first_date
"""

TUMBLING = """
WITH placed AS (
    SELECT station, date, val, row_number() OVER (PARTITION BY station ORDER BY date) AS place FROM readings
),
latest AS (SELECT station, MAX(place) AS place FROM placed GROUP BY station),
pairs AS (
    SELECT c.station, c.date, c.val, c.place, p.val AS previous
    FROM placed c LEFT JOIN placed p ON p.station = c.station AND p.place = c.place - 1
),
starts AS (SELECT station, date, place FROM pairs WHERE val < 25 AND (place = 1 OR previous > 24)),
stops AS (
    SELECT pairs.station, pairs.place
    FROM pairs JOIN latest ON latest.station = pairs.station
    WHERE pairs.place = latest.place OR (previous < 25 AND val > 24)
),
boundaries AS (
    SELECT starts.station, starts.date, starts.place AS start_place, MIN(stops.place) AS stop_place
    FROM starts JOIN stops ON stops.station = starts.station AND stops.place >= starts.place
    GROUP BY starts.station, starts.date, starts.place
)
SELECT b.station, b.date, AVG(t.val) AS value
FROM boundaries b JOIN placed t ON t.station = b.station AND t.place >= b.start_place
 AND (t.place < b.stop_place OR t.place = b.stop_place AND t.val < 25)
GROUP BY b.station, b.date
"""

SESSION = """
WITH placed AS (
    SELECT station, date, val, row_number() OVER (PARTITION BY station ORDER BY date) AS place FROM readings
),
pairs AS (
    SELECT c.station, c.date, c.place, p.date AS previous, n.date AS following
    FROM placed c
    LEFT JOIN placed p ON p.station = c.station AND p.place = c.place - 1
    LEFT JOIN placed n ON n.station = c.station AND n.place = c.place + 1
),
starts AS (SELECT * FROM pairs WHERE previous IS NULL OR date > previous + INTERVAL '2' DAY),
stops AS (SELECT * FROM pairs WHERE following IS NULL OR following > date + INTERVAL '2' DAY),
boundaries AS (
    SELECT starts.station, starts.date, MIN(stops.date) AS until
    FROM starts JOIN stops ON stops.station = starts.station AND stops.date >= starts.date
    GROUP BY starts.station, starts.date
)
SELECT b.station, b.date, AVG(t.val) AS value
FROM boundaries b JOIN placed t ON t.station = b.station AND t.date BETWEEN b.date AND b.until
GROUP BY b.station, b.date
"""

LABEL = """
WITH placed AS (
    SELECT station, date, val, row_number() OVER (PARTITION BY station ORDER BY date) AS place FROM readings
)
SELECT l.station, l.date, AVG(t.val) AS value
FROM placed l JOIN placed t ON t.station = l.station AND t.place BETWEEN l.place - 1 AND l.place + 1
WHERE l.val < 25
GROUP BY l.station, l.date
"""
