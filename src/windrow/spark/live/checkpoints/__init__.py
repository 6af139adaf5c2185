"""The checkpoint of a live query: its state, its side outputs, and their checksums."""
