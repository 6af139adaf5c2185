"""An online auction: bids without end, auctions that come and go, and state that stays as it is."""
