-- Winning bids: of each auction the highest bid while it is open.
SELECT id, itemName, description, initialBid, reserve, opened, expires, seller, category, auction, bidder, price, bid_at
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY price DESC, bid_at) AS place
    FROM (
        SELECT a.id, a.itemName, a.description, a.initialBid, a.reserve, a.dateTime AS opened, a.expires, a.seller,
               a.category, b.auction, b.bidder, b.price, b.dateTime AS bid_at
        FROM auction AS a JOIN bid AS b ON a.id = b.auction
        WHERE b.dateTime BETWEEN a.dateTime AND a.expires
    ) AS q
) AS r
WHERE place = 1
