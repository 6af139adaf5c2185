"""The relational plan of a query: its nodes, and the properties derived for each."""
