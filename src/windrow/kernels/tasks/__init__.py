"""The phases that tasks run for a window or a match, over whole partitions and over slices."""
