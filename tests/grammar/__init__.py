"""The grammar of ``docs/sql/grammar.txt``: read, drawn as diagrams, and held to the parser.

``python -m tests.grammar`` draws the diagrams into ``docs/images/grammar``.
"""
