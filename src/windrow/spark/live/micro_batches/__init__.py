"""How the driver runs the micro-batches of a live query, for each kind of plan."""
