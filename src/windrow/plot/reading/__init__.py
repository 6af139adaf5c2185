"""From relations to scenes: small queries that fetch the drawn rows, and count the others."""
