"""What kind of live query a text is, and what it needs of its streams."""
