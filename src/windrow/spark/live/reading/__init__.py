"""The kind of live query that a text is, and the inputs that it needs."""
