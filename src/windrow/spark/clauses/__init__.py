"""WINDOW BY and MATCH_RECOGNIZE as batch DataFrames."""
