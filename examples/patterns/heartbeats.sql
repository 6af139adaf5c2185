-- Heartbeats after which no other came for two minutes: when the silence was noticed, and when the host was back.
CREATE OR REPLACE TEMPORARY VIEW heartbeats AS
SELECT host, to_timestamp(concat('2024-05-01 ', at)) AS at FROM VALUES
    ('a', '10:00:00'), ('a', '10:01:00'), ('a', '10:02:30'), ('a', '10:07:00'), ('a', '10:08:00'),
    ('b', '10:00:00'), ('b', '10:05:00') AS t(host, at);

SELECT host, last_seen, missed_at, back_at FROM heartbeats MATCH_RECOGNIZE (
    PARTITION BY host ORDER BY at
    MEASURES BEAT.at AS last_seen, BEAT.at + INTERVAL 2 MINUTES AS missed_at, NEXT(BEAT.at) AS back_at
    PATTERN (BEAT) DURATION 2 MINUTES
    DEFINE BEAT AS true
)
ORDER BY host, last_seen;
