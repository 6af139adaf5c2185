"""The output of the command line: forms of rows, tables, files."""
