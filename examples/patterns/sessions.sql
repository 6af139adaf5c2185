-- Sessions of clicks that end with an order: no pause of more than thirty minutes, at least two views before it.
CREATE OR REPLACE TEMPORARY VIEW clicks AS
SELECT user, to_timestamp(concat('2024-05-01 ', at)) AS at, page FROM VALUES
    ('ann', '09:00:00', 'view'), ('ann', '09:10:00', 'view'), ('ann', '09:12:00', 'cart'), ('ann', '09:20:00', 'order'),
    ('ann', '12:00:00', 'view'), ('ann', '12:50:00', 'view'), ('ann', '12:55:00', 'order'),
    ('bob', '08:00:00', 'view'), ('bob', '08:05:00', 'order'), ('bob', '08:06:00', 'view'), ('bob', '08:07:00', 'view'),
    ('bob', '08:30:00', 'view'), ('bob', '08:59:00', 'order') AS t(user, at, page);

SELECT user, began, lasted, views FROM clicks MATCH_RECOGNIZE (
    PARTITION BY user ORDER BY at
    MEASURES FIRST(at) AS began, LAST(at) - FIRST(at) AS lasted, COUNT(SEEN.*) AS views
    PATTERN ((SEEN | OTHER)+ BOUGHT)
    DEFINE
        SEEN AS page = 'view' AND (COUNT(*) = 1 OR at - PREV(at) <= INTERVAL 30 MINUTES),
        OTHER AS page = 'cart' AND (COUNT(*) = 1 OR at - PREV(at) <= INTERVAL 30 MINUTES),
        BOUGHT AS page = 'order' AND at - PREV(at) <= INTERVAL 30 MINUTES AND COUNT(SEEN.*) >= 2
)
ORDER BY user, began;
