"""Live queries whose processes are killed again and again: what they gave in the end is the batch answer.

``make chaos``, or ``python -m tests.chaos --kills 100``.
"""
