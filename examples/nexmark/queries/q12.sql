-- Processing time: how many bids of a bidder arrive in ten seconds.
SELECT bidder, COUNT(*) AS bids, wstart, wend
FROM TUMBLE(TABLE bid, DESCRIPTOR(arrived), INTERVAL 10 SECONDS)
GROUP BY bidder, wstart, wend
