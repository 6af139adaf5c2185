-- New users: persons who open an auction in the ten seconds in which they come.
SELECT p.id, p.name, p.wstart
FROM (
    SELECT id, name, wstart, wend
    FROM TUMBLE(TABLE person, DESCRIPTOR(dateTime), INTERVAL 10 SECONDS)
    GROUP BY id, name, wstart, wend
) AS p
JOIN (
    SELECT seller, wstart, wend
    FROM TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL 10 SECONDS)
    GROUP BY seller, wstart, wend
) AS a ON p.id = a.seller AND p.wstart = a.wstart AND p.wend = a.wend
