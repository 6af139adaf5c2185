"""Watermarks: which entries of a stream are on time, late or ahead, and how far event time is complete."""
