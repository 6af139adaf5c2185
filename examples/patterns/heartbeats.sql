-- The last heartbeat before a silence of more than two minutes, or before the end, and how long there were heartbeats.
CREATE OR REPLACE TEMPORARY VIEW heartbeats AS
SELECT host, to_timestamp(concat('2024-05-01 ', at)) AS at FROM VALUES
    ('a', '10:00:00'), ('a', '10:01:00'), ('a', '10:02:30'), ('a', '10:07:00'), ('a', '10:08:00'),
    ('b', '10:00:00'), ('b', '10:05:00') AS t(host, at);

SELECT host, alive_from, last_seen, beats, back_at FROM heartbeats MATCH_RECOGNIZE (
    PARTITION BY host ORDER BY at
    MEASURES FIRST(at) AS alive_from, LAST(at) AS last_seen, COUNT(*) AS beats, NEXT(LOST.at) AS back_at
    PATTERN (BEAT* LOST)
    DEFINE
        BEAT AS NEXT(at) - at <= INTERVAL 2 MINUTES,
        LOST AS NEXT(at) IS NULL OR NEXT(at) - at > INTERVAL 2 MINUTES
)
ORDER BY host, alive_from;
