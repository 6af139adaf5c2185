"""Named streams: a durable log in a folder, its many producers, and its clock."""
