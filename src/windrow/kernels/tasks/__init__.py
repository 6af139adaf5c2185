"""What the tasks of a window or a match run, over whole partitions and over slices."""
