-- Highest bid: the bids with the highest price of every ten seconds.
SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM bid AS b JOIN (
    SELECT MAX(price) AS most, wstart, wend
    FROM TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL 10 SECONDS)
    GROUP BY wend
) AS m ON b.price = m.most AND b.dateTime >= m.wstart AND b.dateTime < m.wend
