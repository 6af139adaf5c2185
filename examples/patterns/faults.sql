-- A machine runs hot for three readings or more, ever hotter, and then stops.
CREATE OR REPLACE TEMPORARY VIEW readings AS
SELECT * FROM VALUES
    ('m1', 1, 70, 'on'), ('m1', 2, 91, 'on'), ('m1', 3, 93, 'on'), ('m1', 4, 97, 'on'), ('m1', 5, 60, 'off'),
    ('m1', 6, 92, 'on'), ('m1', 7, 94, 'on'), ('m1', 8, 50, 'off'),
    ('m2', 1, 95, 'on'), ('m2', 2, 94, 'on'), ('m2', 3, 96, 'on'), ('m2', 4, 98, 'on'), ('m2', 5, 40, 'off')
    AS t(machine, minute, degrees, state);

SELECT machine, hot_from, stopped_at, hottest FROM readings MATCH_RECOGNIZE (
    PARTITION BY machine ORDER BY minute
    MEASURES FIRST(HOT.minute) AS hot_from, STOP.minute AS stopped_at, MAX(HOT.degrees) AS hottest
    PATTERN (HOT{3,} STOP)
    DEFINE
        HOT AS degrees > 90 AND state = 'on' AND (COUNT(*) = 1 OR degrees > LAST(HOT.degrees, 1)),
        STOP AS state = 'off'
)
ORDER BY machine, hot_from;
