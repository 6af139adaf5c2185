"""Live queries ready to be started: a plan for each kind."""
