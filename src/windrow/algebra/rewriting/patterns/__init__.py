"""Windows of OVER with patterns, rewritten as other queries: before WINDOW BY, over joins and results, beside
others.
"""
