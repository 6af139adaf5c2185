"""What a live query has on disk: its state, its side outputs, and the checksums of both."""
