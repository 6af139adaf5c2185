-- W shapes: prices fall, rise, fall and rise again, and end above where they began.
CREATE OR REPLACE TEMPORARY VIEW closes AS
SELECT * FROM VALUES
    ('X', 1, 20), ('X', 2, 17), ('X', 3, 14), ('X', 4, 18), ('X', 5, 15), ('X', 6, 19), ('X', 7, 22), ('X', 8, 21),
    ('Y', 1, 9), ('Y', 2, 8), ('Y', 3, 9), ('Y', 4, 7), ('Y', 5, 8), ('Y', 6, 6) AS t(symbol, day, price);

SELECT symbol, first_day, last_day, lowest FROM closes MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY day
    MEASURES FIRST(day) AS first_day, LAST(day) AS last_day, MIN(price) AS lowest
    AFTER MATCH SKIP TO LAST RISE
    PATTERN (TOP FALL+ RISE+ AGAIN+ UP* OVER)
    DEFINE
        FALL AS price < PREV(price), RISE AS price > PREV(price),
        AGAIN AS price < PREV(price), UP AS price > PREV(price),
        OVER AS price > PREV(price) AND price > TOP.price
)
ORDER BY symbol, first_day;
