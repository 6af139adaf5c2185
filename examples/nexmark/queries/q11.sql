-- User sessions: how many bids a bidder makes without a pause of more than ten seconds.
SELECT bidder, COUNT(*) AS bids, wstart, wend
FROM SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(dateTime), INTERVAL 10 SECONDS)
GROUP BY bidder, wstart, wend
