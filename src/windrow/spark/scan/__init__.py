"""Files as tables, and files that tasks read themselves."""
