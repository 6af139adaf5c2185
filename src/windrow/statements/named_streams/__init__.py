"""Statements about named streams: CREATE STREAM in a folder, INSERT INTO one, PUNCTUATE."""
