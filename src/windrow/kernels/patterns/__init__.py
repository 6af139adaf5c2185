"""Row pattern recognition: patterns as programs, the machine that runs them, the measures of matches.

    tree ─ compile_pattern ─▶ program ─ find_matches ─▶ matches ─ measured ─▶ values

`tree.py` is the pattern, `program.py` its instructions, `machine.py` runs them; `execution.py` makes
columns of the conditions and calls it, compiled by `conditions.py` where rows are many; `measures.py` reads
the matches.
"""
