-- Average selling price of a seller: of the last eleven auctions.
SELECT seller, AVG(price) OVER (PARTITION BY seller ORDER BY dateTime ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY id, seller ORDER BY price DESC, dateTime) AS place
    FROM (
        SELECT a.id, a.seller, b.price, b.dateTime
        FROM auction AS a JOIN bid AS b ON a.id = b.auction
        WHERE b.dateTime BETWEEN a.dateTime AND a.expires
    ) AS q
) AS r
WHERE place = 1
