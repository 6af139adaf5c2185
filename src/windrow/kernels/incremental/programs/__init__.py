"""Programs: operators and the computations between them, as data; and the rules that rewrite them."""
