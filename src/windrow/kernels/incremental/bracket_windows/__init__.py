"""CQL's windows in brackets, live: which rows are in them, and one SELECT over them."""
