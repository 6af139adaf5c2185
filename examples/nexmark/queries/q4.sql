-- Average price of a category: of the highest bid that each auction had while it was open.
SELECT category, AVG(final) AS average
FROM (
    SELECT a.id, a.category, MAX(b.price) AS final
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.dateTime BETWEEN a.dateTime AND a.expires
    GROUP BY a.id, a.category
) AS q
GROUP BY category
