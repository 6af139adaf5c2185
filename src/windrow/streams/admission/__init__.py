"""Which entries of a stream are on time, late, or ahead, and how far the stream is known."""
