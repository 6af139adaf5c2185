-- Top ten: of each auction the ten highest bids.
SELECT auction, bidder, price, channel, url, dateTime, extra, place
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, dateTime) AS place FROM bid
) AS r
WHERE place <= 10
