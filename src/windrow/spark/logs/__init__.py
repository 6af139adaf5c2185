"""Streams as a session knows them: recorded, live and named, and which of their rows are admitted."""
