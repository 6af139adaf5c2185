-- Expand: the bids on auctions of a category, with all that is known of the auction.
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime AS bid_at, a.itemName, a.description, a.initialBid,
       a.reserve, a.dateTime AS opened, a.expires, a.seller, a.category
FROM bid AS b JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10
