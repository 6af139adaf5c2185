"""Where the rows of a live query go."""
