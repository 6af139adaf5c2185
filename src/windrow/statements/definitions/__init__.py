"""Views and functions whose queries have clauses of ours: made, stored, and read in place of their names."""
