"""Reads what queries say of streams: EMIT, CREATE STREAM, PUNCTUATE, OPTIMIZE, table functions, other
dialects.
"""
