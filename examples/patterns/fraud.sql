-- A card is tried with small amounts, two or more, and then charged a large one, all within ten minutes.
CREATE OR REPLACE TEMPORARY VIEW charges AS
SELECT card, to_timestamp(concat('2024-05-01 ', at)) AS at, amount FROM VALUES
    ('1111', '10:00:00', 1.0), ('1111', '10:01:00', 2.5), ('1111', '10:03:00', 0.5), ('1111', '10:05:00', 900.0),
    ('1111', '11:00:00', 1.0), ('1111', '11:30:00', 2.0), ('1111', '11:45:00', 700.0),
    ('2222', '10:00:00', 3.0), ('2222', '10:02:00', 650.0), ('2222', '10:20:00', 4.0), ('2222', '10:21:00', 2.0),
    ('2222', '10:25:00', 40.0), ('2222', '10:26:00', 820.0) AS t(card, at, amount);

SELECT card, tries, charged_at, amount FROM charges MATCH_RECOGNIZE (
    PARTITION BY card ORDER BY at
    MEASURES COUNT(SMALL.*) AS tries, LARGE.at AS charged_at, LARGE.amount AS amount
    PATTERN (SMALL{2,} LARGE) WITHIN INTERVAL 10 MINUTES
    DEFINE SMALL AS amount < 50, LARGE AS amount > 500
)
ORDER BY card, charged_at;
