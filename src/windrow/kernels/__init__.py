"""Pure functions over columns: what decides every answer, in batch, in slices and live. See README.md."""
