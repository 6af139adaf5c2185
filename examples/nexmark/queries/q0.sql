-- Pass through: every bid.
SELECT auction, bidder, price, dateTime, extra FROM bid
