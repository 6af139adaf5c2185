"""Operators of live queries over punctuated streams, and the punctuation that they expect."""
