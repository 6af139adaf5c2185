"""What a live query does in a micro-batch on the driver, one way for each kind of plan."""
