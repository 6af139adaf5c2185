"""One relational plan of a query: its nodes, and what each derives of what it reads."""
