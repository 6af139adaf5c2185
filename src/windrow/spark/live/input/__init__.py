"""What a micro-batch brings: entries, files, ticks, and entries that are malformed."""
