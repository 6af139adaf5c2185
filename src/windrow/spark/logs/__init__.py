"""A session's streams: recorded, live and named ones, and which of their rows are admitted."""
