"""The clauses as functions over DataFrames."""
