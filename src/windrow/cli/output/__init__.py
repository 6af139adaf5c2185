"""How rows leave the command line."""
