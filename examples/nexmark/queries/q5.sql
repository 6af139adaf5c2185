-- Hot items: the auctions with the most bids of the last ten seconds, every two seconds.
SELECT c.wstart, c.wend, c.auction, c.num
FROM (
    SELECT wstart, wend, auction, COUNT(*) AS num
    FROM HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL 2 SECONDS, INTERVAL 10 SECONDS)
    GROUP BY wstart, wend, auction
) AS c
JOIN (
    SELECT MAX(num) AS most, wend
    FROM (
        SELECT wend, auction, COUNT(*) AS num
        FROM HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL 2 SECONDS, INTERVAL 10 SECONDS)
        GROUP BY wend, auction
    ) AS n
    GROUP BY wend
) AS m ON c.wend = m.wend AND c.num = m.most
