-- Last bid: of each bidder on each auction.
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS place FROM bid
) AS r
WHERE place = 1
