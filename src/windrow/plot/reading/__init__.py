"""From relations to scenes: small queries that fetch what is drawn, and how much more there is."""
