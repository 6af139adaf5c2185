"""Pure functions over columns that compute every result: in batch, in slices and live. See README.md."""
