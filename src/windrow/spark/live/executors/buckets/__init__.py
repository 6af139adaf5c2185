"""What buckets compute: windows in brackets, EMIT, one clause."""
