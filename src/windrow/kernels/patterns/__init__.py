"""Row pattern recognition: patterns as programs, the machine that runs them, and the measures of matches.

    tree ─ compile_pattern ─▶ program ─ find_matches ─▶ matches ─ measured ─▶ values

`tree.py` is the pattern, `program.py` its instructions, and `machine.py` runs them. `execution.py` computes
columns for the conditions and calls the machine, which `conditions.py` compiles for many rows. `measures.py`
reads the matches.
"""
