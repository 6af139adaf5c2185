"""What arrives: entries as packets for buckets, and files that tasks read themselves."""
