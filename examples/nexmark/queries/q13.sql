-- Look-up: every bid with what a table has about it.
SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
FROM bid AS b JOIN side_input AS s ON b.auction % 100 = s.key
