"""The input of micro-batches: entries, files, ticks, and malformed entries."""
