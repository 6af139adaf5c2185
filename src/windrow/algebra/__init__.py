"""What a query means, as immutable nodes: windows over rows that Spark makes, read by SQL that Spark runs."""
