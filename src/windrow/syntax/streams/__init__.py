"""Reads what queries say of streams: EMIT, CREATE STREAM, PUNCTUATE, table functions, other dialects."""
