"""What is known of a running query: its account, progress, state, failures, and rows set aside."""
