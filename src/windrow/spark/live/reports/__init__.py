"""Reports about a running query: its account, progress, state, failures, and side outputs."""
